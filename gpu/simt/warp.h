/* The joint operations of a warp, computed from the operands of all its lanes. */
#ifndef GPU_SIMT_WARP_H
#define GPU_SIMT_WARP_H

#include "simt.h"

struct warp_operand {
    _Alignas(16) unsigned char bytes[SIMT_OPERAND_BYTES];
};

const char *warp_op_name(enum simt_op op);
/* NULL, or what is wrong with the operands of the lanes in mask. */
const char *warp_resolve(enum simt_op op, unsigned mask, const struct warp_operand in[],
                         struct warp_operand out[]);

#endif
