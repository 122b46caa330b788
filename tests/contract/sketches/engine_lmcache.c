/* A tier below the host pool, as LMCache's local disk: a block that a step has swapped out is
 * stored in a file, and loaded to where a later step swaps it in. */
#include <inflight/engine.h>

struct lmcache {
    const struct ifl_engine *engine;
    void *self, *staging; /* staging: block_bytes */
    FILE *file;
};

static int lmcache_seek(const struct lmcache *c, long record, struct ifl_error *error)
{
    const size_t n = c->engine->block_bytes(c->self);
    return fseek(c->file, record * (long)n, SEEK_SET) == 0
               ? 0
               : ifl_fail(error, IFL_E_IO, "record %ld cannot be reached", record);
}

int lmcache_store(const struct lmcache *c, uint32_t host_block, long record,
                  struct ifl_error *error)
{
    const size_t n = c->engine->block_bytes(c->self);
    if (c->engine->read_block(c->self, IFL_HOST_POOL, host_block, c->staging, error) < 0 ||
        lmcache_seek(c, record, error) < 0)
        return error->code;
    return fwrite(c->staging, n, 1, c->file) == 1 ? 0 : ifl_fail(error, IFL_E_IO, "not stored");
}

int lmcache_load(const struct lmcache *c, uint32_t host_block, long record, struct ifl_error *error)
{
    const size_t n = c->engine->block_bytes(c->self);
    if (lmcache_seek(c, record, error) < 0)
        return error->code;
    if (fread(c->staging, n, 1, c->file) != 1)
        return ifl_fail(error, IFL_E_IO, "record %ld is not whole", record);
    return c->engine->write_block(c->self, IFL_HOST_POOL, host_block, c->staging, error);
}
