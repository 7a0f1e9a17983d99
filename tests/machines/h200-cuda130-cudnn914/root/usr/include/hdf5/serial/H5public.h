#define H5_VERS_MAJOR 1
#define H5_VERS_MINOR 10
#define H5_VERS_RELEASE 10
#define H5_VERS_SUBRELEASE ""
#define H5_VERS_INFO "HDF5 library version: 1.10.10"
