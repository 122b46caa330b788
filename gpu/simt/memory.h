/* Models which global memory a launch sees if it overlaps the previous one; for runtime.c. */
#ifndef GPU_SIMT_MEMORY_H
#define GPU_SIMT_MEMORY_H

#include "simt.h"

/* memory_launch: a launch begins; notes which writes it must not see yet. memory_launched: it
 * ends. */
void memory_launch(bool may_overlap);
void memory_launched(void);
bool memory_is_hidden(void);
/* A block begins. */
void memory_hide(void);
/* The lanes of the block have waited for the previous launch; at_end: the block has ended. */
void memory_show(bool at_end);
/* A lane allows the next launch to begin. */
void memory_admit(void);

#endif
