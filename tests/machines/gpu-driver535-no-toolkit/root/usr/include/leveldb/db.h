static const int kMajorVersion = 1;
static const int kMinorVersion = 23;
