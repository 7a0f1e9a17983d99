#if defined(__GNUC__)
#if __GNUC__ > 14
#error -- unsupported GNU version! gcc versions later than 14 are not supported!
#endif /* __GNUC__ > 14 */
#endif
