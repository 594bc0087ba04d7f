# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.core.tree import Partial as Partial
from pullback.core.tree import PyTreeDef as PyTreeDef
from pullback.core.tree import all as tree_all
from pullback.core.tree import all_leaves as all_leaves
from pullback.core.tree import broadcast as tree_broadcast
from pullback.core.tree import flatten as tree_flatten
from pullback.core.tree import flatten_with_path as tree_flatten_with_path
from pullback.core.tree import leaves as tree_leaves
from pullback.core.tree import leaves_with_path as tree_leaves_with_path
from pullback.core.tree import map_with_path as tree_map_with_path
from pullback.core.tree import reduce as tree_reduce
from pullback.core.tree import reduce_associative as tree_reduce_associative
from pullback.core.tree import structure as tree_structure
from pullback.core.tree import transpose as tree_transpose
from pullback.core.tree import tree_map as tree_map
from pullback.core.tree import treedef_children as treedef_children
from pullback.core.tree import treedef_is_leaf as treedef_is_leaf
from pullback.core.tree import treedef_tuple as treedef_tuple
from pullback.core.tree import unflatten as tree_unflatten
from pullback.core.tree_nodes import DictKey as DictKey
from pullback.core.tree_nodes import FlattenedIndexKey as FlattenedIndexKey
from pullback.core.tree_nodes import GetAttrKey as GetAttrKey
from pullback.core.tree_nodes import KeyEntry as KeyEntry
from pullback.core.tree_nodes import KeyPath as KeyPath
from pullback.core.tree_nodes import SequenceKey as SequenceKey
from pullback.core.tree_nodes import flatten_one_level as flatten_one_level
from pullback.core.tree_nodes import flatten_one_level_with_keys as flatten_one_level_with_keys
from pullback.core.tree_nodes import is_tree_node as is_tree_node
from pullback.core.tree_nodes import keystr as keystr
from pullback.core.tree_nodes import register_dataclass as register_dataclass
from pullback.core.tree_nodes import register_pytree_node as register_pytree_node
from pullback.core.tree_nodes import register_pytree_node_class as register_pytree_node_class
from pullback.core.tree_nodes import register_pytree_with_keys as register_pytree_with_keys
from pullback.core.tree_nodes import register_pytree_with_keys_class as register_pytree_with_keys_class
from pullback.core.tree_nodes import register_static as register_static

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef", "SequenceKey",
    "all_leaves", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "keystr",
    "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast", "tree_flatten",
    "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path",
    "tree_reduce", "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten",
    "treedef_children", "treedef_is_leaf", "treedef_tuple",
]
