from ._caffe import twice, version

__version__ = version()
