/* The nearest words by edit distance: insertions, deletions, substitutions and swaps of neighbours,
 * each letter edited once (Damerau 1964, in its optimal string alignment form). The nearest names
 * by their parts. */
#include "inflight/nearest.h"
#include "inflight/minmax.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

enum { MAX_CHARS = 63 };

/* Keeps three rows of the table of distances between prefixes, since a swap reads two rows back. */
static int distance(const char *a, const char *b)
{
    const size_t n_a = strlen(a), n_b = strlen(b);
    int rows[3][MAX_CHARS + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n_b; j++)
        above[j] = (int)j;
    for (size_t i = 1; i <= n_a; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= n_b; j++) {
            row[j] = ifl_min(above[j], row[j - 1]) + 1;
            row[j] = ifl_min(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = ifl_min(row[j], before[j - 2] + 1);
        }
        int *const oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[n_b];
}

/* A candidate of which the word is a short form: "ttft" for "ttft_s". */
static const char *longer_word(const char *word, const char *const *candidates, size_t n)
{
    const size_t n_chars = strlen(word);
    for (size_t i = 0; n_chars > 1 && i < n; i++)
        if (strncmp(candidates[i], word, n_chars) == 0 &&
            (candidates[i][n_chars] == '_' || candidates[i][n_chars] == '-'))
            return candidates[i];
    return NULL;
}

/* The edits that a misspelling may have: one in three letters. A word with more is another word. */
static int most_slips(const char *word)
{
    const size_t n_chars = strlen(word);
    return n_chars < 6 ? 1 : (int)(n_chars / 3);
}

static int apart(const char *word, const char *candidate)
{
    return strlen(word) > MAX_CHARS || strlen(candidate) > MAX_CHARS ? INT_MAX
                                                                     : distance(word, candidate);
}

const char *ifl_nearest(const char *word, const char *const *candidates, size_t n)
{
    int least = most_slips(word) + 1;
    const char *best = NULL;
    for (size_t i = 0; i < n; i++) {
        const int slips = apart(word, candidates[i]);
        if (slips < least) {
            least = slips;
            best = candidates[i];
        }
    }
    return best ? best : longer_word(word, candidates, n);
}

/* ---- names ---- */

struct found {
    const char **of; /* [cap] */
    size_t n, cap;
};

static void take(struct found *found, const char *name)
{
    if (found->n < found->cap)
        found->of[found->n] = name;
    found->n++;
}

/* If the letters and digits of a name begin with those of the word's first n_chars: the rest of the
 * name. NULL if not. */
static const char *behind_stem(const char *name, const char *word, size_t n_chars)
{
    for (size_t i = 0; i < n_chars; i++) {
        if (!isalnum((unsigned char)word[i]))
            continue;
        while (*name && !isalnum((unsigned char)*name))
            name++;
        if (tolower((unsigned char)*name) != tolower((unsigned char)word[i]))
            return NULL;
        name++;
    }
    return name;
}

/* True at a boundary between parts: between "vllm" and "-v1", between "v" and "1", at the end. */
static bool at_boundary(const char *text, const char *at)
{
    const unsigned char here = (unsigned char)*at;
    return !isalnum(here) || (at > text && !isdigit((unsigned char)at[-1]) != !isdigit(here));
}

static void take_alike(struct found *found, const char *word, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *behind = behind_stem(names[i], word, strlen(word));
        if (behind && !*behind)
            take(found, names[i]);
    }
}

/* Takes all names at the least distance, if that is at most `most`. */
static void take_misspelt(struct found *found, const char *word, int most, const char *const *names,
                          size_t n)
{
    int least = most + 1;
    for (size_t i = 0; i < n; i++)
        least = ifl_min(least, apart(word, names[i]));
    for (size_t i = 0; i < n && least <= most; i++)
        if (apart(word, names[i]) == least)
            take(found, names[i]);
}

enum { LEAST_STEM = 2, LEAST_BEGINNING = 3 };

enum end { AT_A_BOUNDARY, ANYWHERE };

/* Takes the names that begin with the word's first n_chars. */
static void take_beginnings(struct found *found, const char *word, size_t n_chars, enum end end,
                            const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *behind = behind_stem(names[i], word, n_chars);
        if (behind && (end == ANYWHERE || at_boundary(names[i], behind)))
            take(found, names[i]);
    }
}

/* Takes the names that share the longest stem of the word. */
static void take_family(struct found *found, const char *word, const char *const *names, size_t n)
{
    for (size_t n_stem = strlen(word); found->n == 0 && n_stem >= LEAST_STEM; n_stem--)
        if (at_boundary(word, word + n_stem) && isalnum((unsigned char)word[n_stem - 1]))
            take_beginnings(found, word, n_stem, AT_A_BOUNDARY, names, n);
}

size_t ifl_nearest_names(const char *word, const char *const *candidates, size_t n,
                         const char **near, size_t cap)
{
    struct found found = {near, 0, cap};
    const size_t n_word = strlen(word);
    const int close = n_word < 8 ? 1 : 2;
    take_alike(&found, word, candidates, n);
    if (found.n == 0 && n_word >= LEAST_STEM)
        take_beginnings(&found, word, n_word, AT_A_BOUNDARY, candidates, n);
    if (found.n == 0)
        take_misspelt(&found, word, close, candidates, n);
    if (found.n == 0 && n_word >= LEAST_BEGINNING)
        take_beginnings(&found, word, n_word, ANYWHERE, candidates, n);
    if (found.n == 0)
        take_family(&found, word, candidates, n);
    if (found.n == 0)
        take_misspelt(&found, word, most_slips(word), candidates, n);
    return found.n;
}
