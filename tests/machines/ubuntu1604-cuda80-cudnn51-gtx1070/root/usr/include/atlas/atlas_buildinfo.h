#define ATL_VERS "3.10.2"
