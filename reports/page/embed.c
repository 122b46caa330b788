/* Run by the build: files as C arrays of characters, each ended by a NUL.
 *
 *     embed OUT.c [NAME FILE... --]...
 *
 * String literals would not do: C17 promises 4,095 characters. */
#include <stdio.h>
#include <string.h>

static int put_file(FILE *out, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    for (int c = getc(file), n = 1; c != EOF; c = getc(file), n++)
        fprintf(out, "%d,%s", c < 128 ? c : c - 256, n % 24 ? "" : "\n");
    fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 1 ? fopen(argv[1], "wb") : NULL;
    if (!out) {
        fprintf(stderr, "usage: embed OUT.c [NAME FILE... --]...\n");
        return 1;
    }
    fputs("#include \"page/parts.h\"\n\n", out);
    for (int i = 2; i < argc; i++) {
        fprintf(out, "const char %s[] = {\n", argv[i]);
        for (i++; i < argc && strcmp(argv[i], "--") != 0; i++)
            if (put_file(out, argv[i]))
                return 1;
        fputs("0};\n", out);
    }
    return fclose(out) ? 1 : 0;
}
