#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { USUAL_COLUMNS = 80 };

bool terminal_is(FILE *out)
{
    const char *kind = getenv("TERM");
    return isatty(fileno(out)) && kind && *kind && strcmp(kind, "dumb") != 0;
}

int terminal_columns(FILE *out)
{
    struct winsize size;
    if (!isatty(fileno(out)))
        return 0;
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                         : USUAL_COLUMNS;
}

const char *terminal_style(FILE *out, enum terminal_style style)
{
    static const char *const codes[] = {
        [STYLE_NAME] = "\033[1m",
        [STYLE_NOTE] = "\033[33m",
        [STYLE_ERROR] = "\033[31m",
        [STYLE_NONE] = "\033[0m",
    };
    const char *no_color = getenv("NO_COLOR");
    return terminal_is(out) && !(no_color && *no_color) ? codes[style] : "";
}

void terminal_wrap(FILE *out, const char *text, int at, int indent, int columns)
{
    bool first = true;
    if (columns == 0) {
        fprintf(out, "%s\n", text);
        return;
    }
    while (*(text += strspn(text, " "))) {
        const int n_chars = (int)strcspn(text, " ");
        if (!first && columns > 0 && at + 1 + n_chars > columns) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            first = true;
        }
        fprintf(out, "%s%.*s", first ? "" : " ", n_chars, text);
        at += n_chars + !first;
        first = false;
        text += n_chars;
    }
    fputc('\n', out);
}
