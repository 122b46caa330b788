/* Base64 as in RFC 4648, section 4: four letters are three bytes, '=' fills the last four. */
#include "text/text.h"

static int value_of(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A';
    if (letter >= 'a' && letter <= 'z')
        return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9')
        return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

long text_base64(const char *text, size_t n, char *out)
{
    unsigned long bits = 0;
    long n_out = 0;
    size_t n_letters = n;
    while (n_letters > 0 && n - n_letters < 2 && text[n_letters - 1] == '=')
        n_letters--;
    if (n % 4 != 0 || n_letters % 4 == 1)
        return -1;
    for (size_t i = 0; i < n_letters; i++) {
        const int value = value_of(text[i]);
        if (value < 0)
            return -1;
        bits = bits << 6 | (unsigned long)value;
        if (i % 4 != 0)
            out[n_out++] = (char)(bits >> (6 - 2 * (i % 4)) & 0xff);
    }
    return n_out;
}
