"""Trees, under the names of ``jax.tree_util``."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.core.tree": (
            "Partial PyTreeDef all_leaves tree_all=all tree_broadcast=broadcast tree_flatten=flatten "
            "tree_flatten_with_path=flatten_with_path tree_leaves=leaves tree_leaves_with_path=leaves_with_path "
            "tree_map tree_map_with_path=map_with_path tree_reduce=reduce tree_reduce_associative=reduce_associative "
            "tree_structure=structure tree_transpose=transpose tree_unflatten=unflatten treedef_children "
            "treedef_is_leaf treedef_tuple"
        ),
        "pullback.core.tree_nodes": (
            "DictKey FlattenedIndexKey GetAttrKey KeyEntry KeyPath SequenceKey flatten_one_level "
            "flatten_one_level_with_keys is_tree_node keystr register_dataclass register_pytree_node "
            "register_pytree_node_class register_pytree_with_keys register_pytree_with_keys_class register_static"
        ),
    },
)
