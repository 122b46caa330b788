#include "base/server_flags.h"

#include <stdio.h>
#include <string.h>

const struct server_flags *server_flags_of(enum server server)
{
    return server == SERVER_VLLM     ? &vllm_flags
           : server == SERVER_SGLANG ? &sglang_flags
                                     : &trtllm_flags;
}

const char *server_name(enum server server)
{
    return server == SERVER_VLLM ? "vLLM" : server == SERVER_SGLANG ? "SGLang" : "TensorRT-LLM";
}

/* How many characters of `name` the word begins with; dashes are underscores. */
static size_t n_same(const char *word, const char *name)
{
    size_t n = 0;
    while (word[n] && (word[n] == name[n] || (word[n] == '-' && name[n] == '_')))
        n++;
    return n;
}

static bool is_alias(const char *word, const char *aliases)
{
    for (const char *at = aliases; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        const size_t n = n_same(word, at);
        if (n > 0 && !word[n] && (at[n] == ' ' || !at[n]))
            return true;
    }
    return false;
}

static bool is_name(const char *word, const struct server_flag *flag)
{
    const size_t n = n_same(word, flag->name);
    return (n > 0 && !word[n] && !flag->name[n]) || is_alias(word, flag->aliases);
}

/* The one flag that the word begins the name of. */
static const struct server_flag *find_abbreviated(const struct server_flags *flags,
                                                  const char *word)
{
    const struct server_flag *found = NULL;
    const size_t n_chars = strlen(word);
    for (size_t i = 0; i < flags->n && n_chars > 2; i++) {
        if (flags->of[i].sense == FLAG_ELSEWHERE || n_same(word, flags->of[i].name) < n_chars)
            continue;
        if (found)
            return NULL;
        found = &flags->of[i];
    }
    return found;
}

const struct server_flag *server_flag_find(enum server server, const char *word, bool abbreviated)
{
    const struct server_flags *flags = server_flags_of(server);
    word += strspn(word, "-");
    for (size_t i = 0; i < flags->n; i++)
        if (flags->of[i].sense != FLAG_ELSEWHERE && is_name(word, &flags->of[i]))
            return &flags->of[i];
    return abbreviated ? find_abbreviated(flags, word) : NULL;
}

const struct server_flag *server_flag_meant(const char *word, enum server *server)
{
    const char *dot = strrchr(word, '.'), *name = dot ? dot + 1 : word;
    name += strspn(name, "-");
    for (*server = 0; *server < N_SERVERS; ++*server) {
        const struct server_flags *flags = server_flags_of(*server);
        for (size_t i = 0; i < flags->n; i++)
            if (flags->of[i].key && is_name(name, &flags->of[i]))
                return &flags->of[i];
    }
    return NULL;
}

bool server_flag_allows(const struct server_flag *flag, const char *value)
{
    const size_t n_chars = strlen(value);
    for (const char *at = flag->neutral; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(value, at, n_chars) == 0 && (at[n_chars] == '|' || !at[n_chars]))
            return true;
    }
    return false;
}

const char *server_flag_spell(const char *name, enum server server, char text[64])
{
    snprintf(text, 64, "--%s", name);
    for (char *c = text; *c; c++)
        *c = *c == '_' && server != SERVER_TRTLLM ? '-' : *c;
    return text;
}

const char *server_flag_describe(const struct server_flag *flag, enum server server, char *text,
                                 size_t n_bytes)
{
    char name[64];
    snprintf(text, n_bytes, "%s's %s is %s%s", server_name(server),
             server_flag_spell(flag->name, server, name), flag->key, flag->value);
    return text;
}
