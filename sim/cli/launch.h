/* Shared parts of the commands that simulate studies: options, plug-ins, ranks, notes, and the end.
 */
#ifndef SIM_CLI_LAUNCH_H
#define SIM_CLI_LAUNCH_H

#include <pthread.h>

#include "cli/inputs.h"
#include "cli/options.h"
#include "config/config.h"

enum { LAUNCH_MAX_NOTES = 32 };

struct launch {
    const char *out_dir;
    long long n_threads;
    bool quiet, timing, resume, plot, dry_run;
    bool places; /* capacity.placement, if given, defines the sweep */
    struct text_list configs, sets, plugins;
    char config_path[512];
    struct study *study;
    struct inputs inputs;
    struct ifl_error error;
    /* notes printed so far: many points give the same note */
    pthread_mutex_t lock;
    char *notes[LAUNCH_MAX_NOTES];
    size_t n_notes;
};

/* Rows of the option tables of these commands. */
#define LAUNCH_OPTION(name, alias, kind, member, ...)                                              \
    {                                                                                              \
        name, alias, OPTION_##kind, offsetof(struct launch, member), __VA_ARGS__                   \
    }
#define LAUNCH_OPTIONS                                                                             \
    LAUNCH_OPTION("--set", NULL, LIST, sets, "KEY=VALUE", "set a key of the configuration",        \
                  COMPLETE_SETTING),                                                               \
        LAUNCH_OPTION("--plugin", NULL, LIST, plugins, "FILE.so",                                  \
                      "load a file with your own policies", COMPLETE_FILE),                        \
        LAUNCH_OPTION("--output", "-o", TEXT, out_dir, "DIR",                                      \
                      "folder for the reports (the key output.dir)", COMPLETE_FOLDER),             \
        LAUNCH_OPTION("--jobs", "-j", COUNT, n_threads, "N",                                       \
                      "threads that run points in parallel (1)", COMPLETE_NOTHING),                \
        LAUNCH_OPTION("--dry-run", NULL, FLAG, dry_run, NULL,                                      \
                      "write no files: print the points, what they assume and how long they take", \
                      COMPLETE_NOTHING),                                                           \
        LAUNCH_OPTION("--resume", NULL, FLAG, resume, NULL,                                        \
                      "run the points that an interrupted run has not finished",                   \
                      COMPLETE_NOTHING),                                                           \
        LAUNCH_OPTION("--quiet", "-q", FLAG, quiet, NULL, "no table, notes or progress",           \
                      COMPLETE_NOTHING),                                                           \
        LAUNCH_OPTION("--timing", NULL, FLAG, timing, NULL,                                        \
                      "print at the end where the time went", COMPLETE_NOTHING)

/* Reads the options. 0, or -1 after a line on stderr. */
int launch_read(struct launch *launch, const struct command *command, int argc, char **argv);
/* Joins the other ranks and loads the study. Returns the same code on every rank. */
int launch_load(struct launch *launch);
/* Leaves the ranks and frees everything; rank 0 prints the error. Returns the exit code, which is 0
 * on the other ranks. */
int launch_end(struct launch *launch, int code);

/* True if this rank prints messages. */
bool launch_speaks(const struct launch *launch);
/* An ifl_note_fn; its context is a struct launch. Prints each text once. */
void launch_say(void *launch, const char *text);
/* "preset=vllm-v0 rate_rps=4", for the caller to free. Returns NULL if memory is short; the caller
 * can do without. */
char *launch_label(const struct launch *launch, size_t point);

#endif
