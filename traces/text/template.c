/* Templates: a text with {} once, where the prompt stands. */
#include "text/count.h"

#include <string.h>

int text_template_read(const char *text, struct text_template *around, struct ifl_error *error)
{
    *around = (struct text_template){"", "", 0, 0};
    if (!text || !*text)
        return 0;
    const char *place = strstr(text, "{}");
    if (!place || strstr(place + 2, "{}"))
        return ifl_fail(error, IFL_E_INPUT,
                        "the prompt template has %s {}, expected one, where the prompt stands",
                        place ? "more than one" : "no");
    *around = (struct text_template){text, place + 2, (size_t)(place - text), strlen(place + 2)};
    return 0;
}
