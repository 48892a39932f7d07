"""Formulas of images at other sizes: TVM v0.17's names, order and defaults of arguments."""
from sator import _core, paths

__path__ = []  # TVM's modules below are found by sator.paths
paths.keep_functions(__name__)


def resize2d(data, roi, size, layout="NCHW", method="linear", coordinate_transformation_mode="half_pixel", rounding_method="", bicubic_alpha=-0.5,
             bicubic_exclude=0, extrapolation_value=0.0, out_dtype=None, output_shape=None):
    """Images at another size (h, w): method "nearest_neighbor", "linear" or "cubic", positions as ONNX's Resize has them.

    roi   (begin of h and w, end of h and w), for tf_crop_and_resize alone
    """
    if output_shape is not None:
        raise ValueError("resize2d with output_shape\n  needs: size")
    options = {"out_dtype": out_dtype} if out_dtype else {}
    return _core.formula("image.resize2d", [data, tuple(size)], {
        "roi": [float(r) for r in (roi or (0.0, 0.0, 0.0, 0.0))], "layout": layout, "method": method,
        "coordinate_transformation_mode": coordinate_transformation_mode, "rounding_method": rounding_method, "cubic_alpha": float(bicubic_alpha),
        "cubic_exclude": int(bicubic_exclude), "extrapolation_value": float(extrapolation_value), **options})


__getattr__ = paths.lookup(__name__)
