#include "plot/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inflight/minmax.h"

extern char **environ;

static int fail_to_start(int why, struct ifl_error *error)
{
    if (why == ENOENT)
        return ifl_fail(error, IFL_E_IO,
                        "gnuplot not found: figures need it (on Debian, the package gnuplot-nox)");
    return ifl_fail(error, IFL_E_IO, "cannot start gnuplot: %s", strerror(why));
}

/* Both streams of gnuplot go to `says`; an argument list needs no quotes. */
static int start(char *const *arguments, int says, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int why = posix_spawn_file_actions_init(&actions);
    if (why)
        return why;
    why = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!why)
        why = posix_spawn_file_actions_adddup2(&actions, says, STDOUT_FILENO);
    if (!why)
        why = posix_spawn_file_actions_adddup2(&actions, says, STDERR_FILENO);
    if (!why)
        why = posix_spawnp(child, "gnuplot", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return why;
}

/* Keeps what fits, but reads to the end: gnuplot must not block on a full pipe. */
static void listen(int says, char *words, size_t cap_bytes)
{
    size_t kept = 0;
    for (;;) {
        char chunk[512];
        const ssize_t n = read(says, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        const size_t fits = cap_bytes - 1 - kept;
        const size_t take = ifl_min((size_t)n, fits);
        memcpy(words + kept, chunk, take);
        kept += take;
    }
    words[kept] = '\0';
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* gnuplot points at the place with carets on lines of their own; a message has one line. */
static void one_line(char *words)
{
    size_t kept = 0;
    for (const char *c = words; *c; c++) {
        if (!blank(*c) && *c != '^')
            words[kept++] = *c;
        else if (kept && words[kept - 1] != ' ')
            words[kept++] = ' ';
    }
    while (kept && words[kept - 1] == ' ')
        kept--;
    words[kept] = '\0';
}

static int wait_for(pid_t child, const char *words, const char *script, struct ifl_error *error)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return ifl_fail(error, IFL_E_IO, "lost gnuplot: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return IFL_OK;
    /* Where the C library cannot tell the parent, a child that cannot be executed exits with 127.
     */
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && !*words)
        return fail_to_start(ENOENT, error);
    if (WIFSIGNALED(status))
        return ifl_fail(error, IFL_E_IO, "gnuplot was ended by signal %d on %s", WTERMSIG(status),
                        script);
    return ifl_fail(error, IFL_E_IO, "gnuplot failed on %s: %s", script,
                    *words ? words : "it said nothing");
}

static int run(const struct ifl_drawing *drawing, const char *path, const char *figure,
               struct ifl_error *error)
{
    char empty[] = "", columns[] = {drawing->columns == 2 ? '2' : '1', '\0'};
    char *const all[] = {"gnuplot",
                         "--default-settings",
                         "-e",
                         (char *)drawing->settings,
                         "-c",
                         (char *)path,
                         (char *)drawing->script_dir,
                         (char *)drawing->out_dir,
                         (char *)figure,
                         columns,
                         drawing->note ? (char *)drawing->note : empty,
                         NULL};
    /* Without settings the words in front of them take their place. */
    char *without[sizeof all / sizeof *all - 2];
    without[0] = all[0];
    without[1] = all[1];
    memcpy(without + 2, all + 4, sizeof without - 2 * sizeof *all);
    char *const *arguments = drawing->settings ? all : without;
    char words[512];
    int ends[2];
    pid_t child;
    if (pipe(ends))
        return fail_to_start(errno, error);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    const int why = start(arguments, ends[1], &child);
    close(ends[1]);
    if (!why)
        listen(ends[0], words, sizeof words);
    close(ends[0]);
    if (why)
        return fail_to_start(why, error);
    one_line(words);
    return wait_for(child, words, path, error);
}

int gnuplot_run(const struct ifl_drawing *drawing, const char *script, const char *figure,
                struct ifl_error *error)
{
    const size_t n = strlen(drawing->script_dir) + strlen(script) + sizeof "/.gp";
    char *path = malloc(n);
    if (!path)
        return ifl_fail_nomem(error);
    snprintf(path, n, "%s/%s.gp", drawing->script_dir, script);
    const int code = run(drawing, path, figure, error);
    free(path);
    return code;
}
