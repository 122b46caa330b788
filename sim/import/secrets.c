#include "import/secrets.h"

#include <string.h>
#include <strings.h>

static bool has_part(const char *name, size_t n_chars, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= n_chars; i++)
        if (strncasecmp(name + i, part, n) == 0)
            return true;
    return false;
}

static bool has_end(const char *name, size_t n_chars, const char *end)
{
    const size_t n = strlen(end);
    return n_chars >= n && strncasecmp(name + n_chars - n, end, n) == 0;
}

/* A name ends with token or key: many flags count tokens. Of a variable any place will do. */
bool is_secret_name(const char *name, size_t n_chars)
{
    static const char *const parts[] = {"password",   "passwd",     "passphrase", "secret",
                                        "credential", "api_key",    "api-key",    "apikey",
                                        "access_key", "access-key", "private_key"};
    static const char *const ends[] = {"token", "key", "pwd"};
    static const char *const in_variables[] = {"TOKEN", "KEY"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (has_part(name, n_chars, parts[i]))
            return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (has_end(name, n_chars, ends[i]))
            return true;
    for (size_t i = 0; i < sizeof in_variables / sizeof *in_variables; i++) {
        const char *found = strstr(name, in_variables[i]);
        if (found && found < name + n_chars)
            return true;
    }
    return false;
}

static size_t name_chars(const char *at)
{
    return strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
}

/* "scheme://user:password@host" without what stands in front of the host. */
static void hide_users(char *text)
{
    for (char *at = strstr(text, "://"); at; at = strstr(at, "://")) {
        at += strlen("://");
        const size_t n = strcspn(at, "/ '\"");
        for (size_t i = n; i-- > 0;)
            if (at[i] == '@') {
                memmove(at, at + i + 1, strlen(at + i + 1) + 1);
                break;
            }
    }
}

/* "--max-num-batched-token 2k" is a count; no token and no key is that short a number. */
static bool is_count(const char *value)
{
    value += strspn(value, "=: '\"");
    const size_t n = strspn(value, "0123456789kK");
    return n > 0 && n < 8 && (!value[n] || strchr(" ,}'\")", value[n]));
}

void hide_secrets(char *text)
{
    hide_users(text);
    for (char *at = text; *at;) {
        const size_t n = name_chars(at);
        char *end = at + n;
        const char *sign = end + (n > 0 && (*end == '\'' || *end == '"'));
        if (n > 0 && *sign && strchr("=: ", *sign) && is_secret_name(at, n) &&
            !(has_end(at, n, "token") && is_count(sign))) {
            *end = '\0';
            return;
        }
        at = end + (*end != '\0');
    }
}
