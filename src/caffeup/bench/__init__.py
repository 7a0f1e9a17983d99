"""Nets measured: variants of a prototxt, the output of ``caffe time``, medians, and which engine is best for a layer.

Pure values: ``app.bench_run`` runs the program, ``app.benching`` and ``app.tuning`` go through variants with it.
"""
