#include "cli/manual.h"

#include <ctype.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/usage.h"

/* ---- roff ---- */

/* Letters that roff would read as requests or turn into other letters (groff_char(7)). */
static void put(FILE *out, const char *text)
{
    if (*text == '.')
        fputs("\\&", out);
    for (; *text; text++)
        switch (*text) {
        case '\\':
            fputs("\\e", out);
            break;
        case '-':
            fputs("\\-", out);
            break;
        case '`':
            fputs("\\(ga", out);
            break;
        case '\'':
            fputs("\\(aq", out);
            break;
        case '^':
            fputs("\\(ha", out);
            break;
        case '~':
            fputs("\\(ti", out);
            break;
        default:
            fputc(*text, out);
        }
}

static void put_in(FILE *out, char font, const char *text)
{
    fprintf(out, "\\f%c", font);
    put(out, text);
    fputs("\\fR", out);
}

static void put_paragraph(FILE *out, const char *text)
{
    put(out, text);
    fputc('\n', out);
}

/* "inflight-trace-stats" */
static const char *page_name(const struct command *command, char name[64])
{
    snprintf(name, 64, "inflight%s%s", command ? "-" : "", command ? command->name : "");
    for (char *c = name; *c; c++)
        if (*c == ' ')
            *c = '-';
    return name;
}

static void put_head(FILE *out, const struct command *command, const char *doc)
{
    char name[64];
    fprintf(out, ".\\\" written by `inflight help --write`\n.TH ");
    page_name(command, name);
    for (const char *c = name; *c; c++)
        fprintf(out, "%s%c", *c == '-' ? "\\" : "", toupper((unsigned char)*c));
    fprintf(out, " 1 \"\" \"inflight " INFLIGHT_VERSION "\" \"inflight\"\n.SH NAME\n");
    put(out, name);
    fputs(" \\- ", out);
    put_paragraph(out, doc);
}

static void put_ending(FILE *out)
{
    fputs(".SH EXIT STATUS\n0: done. 1: the run failed. 2: the input is wrong.\n", out);
}

/* ---- a command ---- */

static void put_option(FILE *out, const struct option_spec *option)
{
    char doc[256];
    fputs(".TP\n", out);
    if (option->alias) {
        put_in(out, 'B', option->alias);
        fputs(", ", out);
    }
    put_in(out, 'B', option->name);
    if (option->value) {
        fputc(' ', out);
        put_in(out, 'I', option->value);
    }
    fputc('\n', out);
    put_paragraph(out, usage_doc(option, doc));
}

static void put_call(FILE *out, const struct command *command)
{
    char call[64];
    snprintf(call, sizeof call, "inflight %s", command->name);
    put_in(out, 'B', call);
    fputc(' ', out);
    put_in(out, 'I', command->arguments);
    fputs(*command->arguments ? " [\\fIOPTION\\fR]...\n" : "[\\fIOPTION\\fR]...\n", out);
}

static void put_command(FILE *out, const struct command *command)
{
    put_head(out, command, command->doc);
    fputs(".SH SYNOPSIS\n", out);
    put_call(out, command);
    if (command->notes) {
        fputs(".SH DESCRIPTION\n", out);
        put_paragraph(out, command->notes);
    }
    if (command->n_options > 0)
        fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < command->n_options; i++)
        put_option(out, &command->options[i]);
    fputs(".SH EXAMPLE\n.nf\n", out);
    put_paragraph(out, command->example);
    fputs(".fi\n", out);
    put_ending(out);
    fputs(".SH SEE ALSO\n.BR inflight (1)\n", out);
}

/* ---- all of them ---- */

static void put_overview(FILE *out)
{
    const struct command *command;
    char name[64];
    put_head(out, NULL, "a flight simulator for LLM serving policies");
    fputs(".SH SYNOPSIS\n\\fBinflight\\fR \\fICOMMAND\\fR ...\n.SH COMMANDS\n", out);
    for (size_t i = 0; (command = command_at(i)); i++) {
        fputs(".TP\n", out);
        put_in(out, 'B', command->name);
        fputc('\n', out);
        put_paragraph(out, command->doc);
    }
    put_ending(out);
    fputs(".SH ENVIRONMENT\n.TP\n\\fBINFLIGHT_DATA\\fR\n"
          "the folder with configs, traces and figures, in place of the installed one\n"
          ".TP\n\\fBINFLIGHT_ENGINE_DIR\\fR\n"
          "the one folder where modules of engines are looked for\n"
          ".TP\n\\fBXDG_CACHE_HOME\\fR\n"
          "the folder that keeps counts of tokens, in inflight/tokens (~/.cache)\n"
          ".TP\n\\fBNO_COLOR\\fR\nany value: no colours on a terminal\n.SH SEE ALSO\n",
          out);
    for (size_t i = 0; (command = command_at(i)); i++) {
        fputs(".BR ", out);
        put(out, page_name(command, name));
        fprintf(out, " (1)%s\n", command_at(i + 1) ? "," : "");
    }
}

void manual_write(FILE *out, const struct command *command)
{
    if (command)
        put_command(out, command);
    else
        put_overview(out);
}
