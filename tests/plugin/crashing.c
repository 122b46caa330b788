/* The smallest engine with one call that crashes: -DCRASH=step, open or close. */
#define ifl_engine_v1 sound_v1
#include "toy.c"
#undef ifl_engine_v1

#define IN_open 1
#define IN_step 2
#define IN_close 3
#define NUMBER_OF(call) IN_##call
#define NUMBER(call) NUMBER_OF(call)

static int *volatile nowhere;

static void maybe(int call)
{
    if (call == NUMBER(CRASH))
        *nowhere = 1;
}

static int open_crashing(const struct ifl_engine_options *options, void **self,
                         struct ifl_error *error)
{
    maybe(IN_open);
    return open_toy(options, self, error);
}

static int step_crashing(void *self, struct ifl_engine_step *step, struct ifl_error *error)
{
    maybe(IN_step);
    return run_step(self, step, error);
}

static void close_crashing(void *self)
{
    maybe(IN_close);
    close_toy(self);
}

extern const struct ifl_engine ifl_engine_v1;
const struct ifl_engine ifl_engine_v1 = {
    .abi = IFL_ENGINE_ABI,
    .engine_bytes = sizeof(struct ifl_engine),
    .options_bytes = sizeof(struct ifl_engine_options),
    .step_bytes = sizeof(struct ifl_engine_step),
    .name = "cpu",
    .open = open_crashing,
    .step = step_crashing,
    .block_bytes = block_bytes,
    .read_block = read_block,
    .write_block = write_block,
    .close = close_crashing,
};
