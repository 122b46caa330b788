#include "live/replay_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/error.h"

int replay_text_add(struct replay_text *text, const char *bytes, size_t n)
{
    if (text->n + n > text->cap) {
        const size_t more = text->n + n + (text->n + n) / 2 + 256;
        if (array_grow(&text->of, text->n, more, 1) < 0)
            return IFL_E_NOMEM;
        text->cap = more;
    }
    if (n > 0)
        memcpy(text->of + text->n, bytes, n);
    text->n += n;
    return 0;
}

void replay_text_free(struct replay_text *text)
{
    free(text->of);
    *text = (struct replay_text){0};
}
