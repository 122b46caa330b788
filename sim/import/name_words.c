#include "import/name_words.h"

#include <ctype.h>
#include <math.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A word begins behind a separator; a point between digits is none. */
static bool begins_word(const char *name, const char *at)
{
    return is_digit(*at) && (at == name || (!isalnum((unsigned char)at[-1]) &&
                                            !(at[-1] == '.' && at - 1 > name && is_digit(at[-2]))));
}

/* "8x7", "1.5" or "560"; `*end` is what stands behind it. */
static double read_amount(const char *at, const char **end)
{
    double amount = 0, times = 1;
    for (;; at++) {
        for (amount = 0; is_digit(*at); at++)
            amount = 10 * amount + (*at - '0');
        if ((*at != 'x' && *at != 'X') || !is_digit(at[1]))
            break;
        times *= amount;
    }
    if (*at == '.' && is_digit(at[1])) {
        double place = 1;
        for (at++; is_digit(*at); at++)
            amount += (*at - '0') * (place /= 10);
    }
    *end = at;
    return times * amount;
}

/* Of tokens: the 2^n with as many thousands, or times 1024, as the word says ("262k", "256K"). */
static long long tokens_of(double thousands)
{
    for (long long n = 1024; n <= 1LL << 30; n *= 2)
        if (floor((double)n / 1000) == thousands || (double)n / 1024 == thousands)
            return n;
    return 0;
}

static bool take(const char *at, bool is_sized, struct name_word *word)
{
    const char *end;
    const double amount = read_amount(at, &end);
    const int unit = tolower((unsigned char)*end);
    end += unit == 'b' || unit == 'm' || unit == 'k';
    double parts = 0;
    if (unit == 'b' && is_digit(*end)) /* "7b1" */
        parts = (*end++ - '0') / 10.0;
    if (isalnum((unsigned char)*end) || !(unit == 'b' || unit == 'm' || unit == 'k'))
        return false;
    /* no model of a size in millions has less than ten, nor a size in billions as well */
    const bool is_len = unit == 'k' || (unit == 'm' && (is_sized || amount < 10));
    *word = (struct name_word){.at = at, .is_len = is_len};
    if (!is_len)
        word->params_b = unit == 'm' ? amount / 1000 : amount + parts;
    if (is_len)
        word->thousands = unit == 'm' ? 1000 * amount : amount;
    if (is_len)
        word->n_tokens = unit == 'm' ? tokens_of(1024 * amount) : tokens_of(amount);
    return true;
}

bool name_word_next(const char *name, const char *at, struct name_word *word)
{
    bool is_sized = false;
    for (const char *c = name; *c; c++) {
        if (!begins_word(name, c) || !take(c, is_sized, word))
            continue;
        if (c >= at)
            return true;
        is_sized = is_sized || !word->is_len;
    }
    return false;
}
