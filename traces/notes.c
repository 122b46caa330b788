/* Notes for the user, and foreign text made printable on one line. */
#include "traces.h"

void trace_note(const struct ifl_notes *notes, const char *format, ...)
{
    char text[512];
    va_list args;
    if (!notes || !notes->say)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    notes->say(notes->context, text);
}

const char *trace_printable(char *out, size_t size, const char *text, size_t n)
{
    ifl_assert(size > 0);
    size_t i = 0;
    for (; i < n && i + 1 < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        out[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
    }
    out[i] = '\0';
    return out;
}
