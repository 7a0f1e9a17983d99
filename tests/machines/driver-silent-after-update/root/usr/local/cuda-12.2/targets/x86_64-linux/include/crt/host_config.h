#if defined(__GNUC__)
#if __GNUC__ > 12
#error -- unsupported GNU version! gcc versions later than 12 are not supported!
#endif /* __GNUC__ > 12 */
#endif
#if (__clang_major__ >= 16) || (__clang_major__ < 3) || ((__clang_major__ == 3) &&  (__clang_minor__ < 3))
#error -- unsupported clang version! clang version must be less than 16 and greater than 3.2 .
#endif
