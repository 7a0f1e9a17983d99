#if defined(__GNUC__)
#if __GNUC__ > 9
#error -- unsupported GNU version! gcc versions later than 9 are not supported!
#endif /* __GNUC__ > 9 */
#endif
#if (__clang_major__ >= 11) || (__clang_major__ < 3) || ((__clang_major__ == 3) &&  (__clang_minor__ < 3))
#error -- unsupported clang version! clang version must be less than 11 and greater than 3.2 .
#endif
