"""Index expressions over whole arrays of indices."""
import numpy

from sator import _core

tir = _core.tir
_OF_TWO = {"Add": numpy.add, "Sub": numpy.subtract, "Mul": numpy.multiply, "FloorDiv": numpy.floor_divide, "FloorMod": numpy.mod,
           "Min": numpy.minimum, "Max": numpy.maximum}


def values_of(expr, given):
    """The values of an expression where each variable has an array of them: {variable: array}. Errors: TypeError for another operation."""
    if isinstance(expr, tir.Var):
        return given[expr]
    if isinstance(expr, _core.tir.IntImm):
        return expr.value
    of_two = _OF_TWO.get(type(expr).__name__)
    if of_two is None:
        raise TypeError(f"the index {expr}\n  needs: sums, differences, products, floordiv, floormod, min and max of indices and numbers")
    return of_two(values_of(expr.a, given), values_of(expr.b, given))


def mapped(index_map, array):
    """A NumPy array with the elements of another one where the map takes their indices; 0 where none comes to lie."""
    if array.ndim != len(index_map.initial_indices):
        raise ValueError(f"map_ndarray: an array of rank {array.ndim} for a map of {len(index_map.initial_indices)} indices\n  needs: one index per dimension")
    given = dict(zip(index_map.initial_indices, numpy.indices(array.shape)))
    out = numpy.zeros([int(extent) for extent in index_map.map_shape(list(array.shape))], array.dtype)
    out[tuple(numpy.broadcast_to(values_of(e, given), array.shape) for e in index_map.final_indices)] = array
    return out
