#include "violates.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_child(void (*breach)(void), int out)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGABRT, SIG_DFL);
    dup2(out, STDERR_FILENO);
    breach();
    _exit(0);
}

static size_t read_all(int in, char *text, size_t cap)
{
    size_t n = 0;
    for (ssize_t got; n < cap - 1 && (got = read(in, text + n, cap - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    return n;
}

void expect_abort(void (*breach)(void), const char *function, const char *condition)
{
    char said[4096], expected[160];
    int ends[2], status = 0;
    cr_assert_eq(pipe(ends), 0);
    const pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0)
        run_child(breach, ends[1]);
    close(ends[1]);
    read_all(ends[0], said, sizeof said);
    close(ends[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    snprintf(expected, sizeof expected, ": %s expects: ", function);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s: status %d, said \"%s\"",
              function, status, said);
    const char *at = strstr(said, expected);
    cr_expect(strncmp(said, "inflight: ", 10) == 0 && at, "%s: said \"%s\"", function, said);
    cr_expect(at && strstr(at, condition), "%s: said \"%s\", expected \"%s\"", function, said,
              condition);
}
