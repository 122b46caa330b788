/* The keys are those of systemd.exec(5), systemd.service(5) and podman-systemd.unit(5). */
#include "import/unit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "import/expand.h"
#include "import/words.h"

static const struct place here = {NULL, 0};

/* "[Service]" alone on a line. */
static bool is_section(const char *line)
{
    const size_t n = *line == '[' ? 1 + strcspn(line + 1, "]\n") : 0;
    if (n < 2 || line[n] != ']' || line[n + 1 + strspn(line + n + 1, " \t\r")] != '\n')
        return false;
    for (size_t i = 1; i < n; i++)
        if (!isalnum((unsigned char)line[i]) && line[i] != '-')
            return false;
    return true;
}

static bool is_comment(const char *line)
{
    return *line == '#' || *line == ';';
}

static bool is_unit(const char *text)
{
    const char *line = text + strspn(text, " \t\r\n");
    while (is_comment(line)) {
        line += strcspn(line, "\n");
        line += strspn(line, " \t\r\n");
    }
    return is_section(line);
}

struct unit {
    char *image, *words; /* of the last key of each; owned */
    FILE *out;
    struct facts *facts;
    struct ifl_error *error;
};

/* NAME=value, several in a line, each with quotes around it or within. */
static int put_variables(struct unit *unit, const char *value)
{
    struct words words;
    int code = words_split(value, &words, unit->error);
    for (size_t i = 0; code == 0 && i < words.n; i++) {
        const char *sign = strchr(words.of[i], '=');
        if (!sign)
            continue;
        fprintf(unit->out, "%.*s=", (int)(sign - words.of[i]), words.of[i]);
        expand_quote(sign + 1, unit->out);
        fputc('\n', unit->out);
    }
    if (code == 0)
        words_free(&words);
    return code;
}

static int keep(char **kept, const char *value, struct ifl_error *error)
{
    free(*kept);
    *kept = strdup(value);
    return *kept ? 0 : ifl_fail_nomem(error);
}

static int read_key(struct unit *unit, const char *key, const char *value)
{
    if (strcmp(key, "Environment") == 0)
        return put_variables(unit, value);
    if (strcmp(key, "Image") == 0)
        return keep(&unit->image, value, unit->error);
    if (strcmp(key, "Exec") == 0)
        return keep(&unit->words, value, unit->error);
    if (strcmp(key, "ExecStart") == 0)
        return keep(&unit->words, value + strspn(value, "@-:+!|"), unit->error);
    if (strcmp(key, "EnvironmentFile") == 0)
        return facts_find(unit->facts, FOUND_UNKNOWN, here, key, NULL, "variables of another file",
                          unit->error);
    return facts_find(unit->facts, FOUND_HARMLESS, here, key, NULL, NULL, unit->error);
}

/* Lines are ended in place. */
static int read_lines(struct unit *unit, char *text)
{
    int code = 0;
    for (char *line = text, *next; line && code == 0; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line += strspn(line, " \t");
        char *sign = strchr(line, '=');
        if (is_comment(line) || *line == '[' || !sign)
            continue;
        *sign = '\0';
        code = read_key(unit, line, sign + 1);
    }
    return code;
}

/* A line that ends in a backslash goes on. */
static void join_lines(char *text)
{
    for (char *at = text; (at = strstr(at, "\\\n"));)
        at[0] = at[1] = ' ';
}

int unit_read(const char *text, char **script, struct facts *facts, struct ifl_error *error)
{
    size_t n_bytes;
    struct unit unit = {.facts = facts, .error = error};
    *script = NULL;
    if (!is_unit(text))
        return 0;
    char *copy = strdup(text);
    unit.out = open_memstream(script, &n_bytes);
    int code = copy && unit.out ? 0 : ifl_fail_nomem(error);
    if (code == 0) {
        join_lines(copy);
        code = read_lines(&unit, copy);
    }
    if (code == 0)
        fprintf(unit.out, "%s %s\n", unit.image ? unit.image : "", unit.words ? unit.words : "");
    if (unit.out && fclose(unit.out) != 0 && code == 0)
        code = ifl_fail_nomem(error);
    free(unit.image);
    free(unit.words);
    free(copy);
    if (code < 0) {
        free(*script);
        *script = NULL;
    }
    return code;
}
