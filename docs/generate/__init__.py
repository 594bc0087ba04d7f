"""Makes what the documentation site has besides its written pages: the reference, the gallery, tables of contents.

``docs/conf.py`` loads ``extension``, which calls the other modules of this package. They need Pullback, and only
``extension`` needs Sphinx, so that a test checks their results without building the site.
"""
