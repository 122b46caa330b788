/* Bytes that grow. */
#ifndef SIM_LIVE_REPLAY_TEXT_H
#define SIM_LIVE_REPLAY_TEXT_H

#include <stddef.h>

struct replay_text { /* zeroed memory is empty */
    char *of;        /* [n], owned */
    size_t n, cap;
};

/* Appends; 0 or IFL_E_NOMEM. */
int replay_text_add(struct replay_text *text, const char *bytes, size_t n);
void replay_text_free(struct replay_text *text); /* it is then empty */

#endif
