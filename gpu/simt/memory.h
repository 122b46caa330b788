/* What a launch that overlaps the one before sees of global memory; for runtime.c. */
#ifndef GPU_SIMT_MEMORY_H
#define GPU_SIMT_MEMORY_H

#include "simt.h"

/* A launch begins: notes what it must not see yet; and ends. */
void memory_launch(bool may_overlap);
void memory_launched(void);
bool memory_is_hidden(void);
/* A block begins. */
void memory_hide(void);
/* Its lanes have waited; at_end: it has ended. */
void memory_show(bool at_end);
/* A lane admits the next launch. */
void memory_admit(void);

#endif
