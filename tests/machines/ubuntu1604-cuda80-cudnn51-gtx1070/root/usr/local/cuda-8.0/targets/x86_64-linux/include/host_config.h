#if defined(__GNUC__)
#if __GNUC__ > 5
#error -- unsupported GNU version! gcc versions later than 5 are not supported!
#endif /* __GNUC__ > 5 */
#endif
