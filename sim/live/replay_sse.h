/* A reader of server-sent events with bounded memory, whatever a server sends.
 *
 * Only the data of an event counts: its lines "data: ...", joined by line feeds. Comments, ids,
 * names and retry times are skipped. Lines end with CR, LF or both. If the stream ends before the
 * blank line behind an event, the event is dropped, as the standard says.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html (WHATWG, section 9.2.6) */
#ifndef SIM_LIVE_REPLAY_SSE_H
#define SIM_LIVE_REPLAY_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "live/replay_text.h"

struct replay_sse {
    size_t most_bytes; /* limit of a line, and of an event's data */
    /* Receives the data of an event, not NUL-ended and borrowed until it returns. Returning false
     * ends the reading. */
    bool (*event)(void *context, const char *data, size_t n);
    void *context;
    /* private: an unfinished line, and the data of an unfinished event */
    struct replay_text line, data;
    bool has_data;
    bool after_cr; /* a line feed that comes now ends no line of its own */
};

enum replay_sse_end {
    REPLAY_SSE_GOES_ON,
    REPLAY_SSE_STOPPED,   /* `event` said so */
    REPLAY_SSE_LONG_LINE, /* above most_bytes */
    REPLAY_SSE_LONG_EVENT,
    REPLAY_SSE_NO_MEMORY
};

/* Reads the next bytes of the stream. After a result other than REPLAY_SSE_GOES_ON it must not be
 * called again. A zeroed reader with the public members set is at the beginning of a stream. */
enum replay_sse_end replay_sse_take(struct replay_sse *sse, const char *bytes, size_t n);
/* Frees the reader's memory; the reader is then at the beginning of a stream. */
void replay_sse_reset(struct replay_sse *sse);

#endif
