/* The common part of the tests' plug-ins: an order that gives all requests the same key. */
#ifndef TESTS_CONFIG_PLUGINS_PLUGIN_H
#define TESTS_CONFIG_PLUGINS_PLUGIN_H

#include "inflight/policy.h"

#define IFL_EXPORT __attribute__((visibility("default")))

static void rank_alike(const void *self, const struct ifl_view *view,
                       const struct ifl_request *const *of, size_t n, int64_t *key)
{
    (void)self, (void)view, (void)of;
    for (size_t i = 0; i < n; i++)
        key[i] = 0;
}

static const struct ifl_order_ops order_ops = {.rank = rank_alike};

#define ORDER(its_name)                                                                            \
    {                                                                                              \
        .kind = IFL_ORDER, .name = its_name, .doc = "", .ops.order = &order_ops                    \
    }

#endif
