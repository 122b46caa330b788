/* The lesser and the greater of two whole numbers.
 *
 *     const int32_t n_new = ifl_min(ifl_todo(r), budget_tokens);
 *
 * The type is that of the sum of both: an int32_t and an int64_t are compared as int64_t, and the
 * compiler warns if the result is then stored in a smaller type. A signed number must not be
 * negative if the other one is unsigned and at least as wide. Each argument is evaluated once. For
 * doubles use fmin and fmax of <math.h>. */
#ifndef INFLIGHT_MINMAX_H
#define INFLIGHT_MINMAX_H

#define IFL_MIN_MAX(name, type)                                                                    \
    static inline type ifl_min_##name(type a, type b)                                              \
    {                                                                                              \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    static inline type ifl_max_##name(type a, type b)                                              \
    {                                                                                              \
        return a > b ? a : b;                                                                      \
    }

IFL_MIN_MAX(int, int)
IFL_MIN_MAX(long, long)
IFL_MIN_MAX(llong, long long)
IFL_MIN_MAX(uint, unsigned)
IFL_MIN_MAX(ulong, unsigned long)
IFL_MIN_MAX(ullong, unsigned long long)

#define IFL_OF_TYPE(function, a, b)                                                                \
    _Generic((a) + (b), int                                                                        \
             : function##_int, long                                                                \
             : function##_long, long long                                                          \
             : function##_llong, unsigned                                                          \
             : function##_uint, unsigned long                                                      \
             : function##_ulong, unsigned long long                                                \
             : function##_ullong)(a, b)

#define ifl_min(a, b) IFL_OF_TYPE(ifl_min, a, b)
#define ifl_max(a, b) IFL_OF_TYPE(ifl_max, a, b)

#endif
