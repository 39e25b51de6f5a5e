/*
 * served - `idem serve` itself, with the outside call cut short inside the process.
 *
 * This is linked from the program's own objects; the linker leads two of its calls here (--wrap):
 *
 *     idem_http_port_create   gives a port that answers every call at once with success, so that
 *                             what is measured is everything but HTTP to a provider. With the
 *                             variable BENCH_HTTP set, the real port.
 *     idem_engine_step        runs the real step, again while the port has answers that the step
 *                             has not taken, and writes into the file named by BENCH_COUNTS how
 *                             many batches and commands there were: two 64-bit numbers.
 *
 * Nothing else differs, and none of it is in the program that is shipped.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bug.h"
#include "engine/engine.h"
#include "provider/http_port.h"
#include "provider/port.h"

/* The linker's names for what it leads here and for what was meant; the real signatures. */
__typeof__(idem_http_port_create) port_create_here __asm__("__wrap_idem_http_port_create");
__typeof__(idem_http_port_create) port_create_real __asm__("__real_idem_http_port_create");
__typeof__(idem_engine_step) step_here __asm__("__wrap_idem_engine_step");
__typeof__(idem_engine_step) step_real __asm__("__real_idem_engine_step");

struct counts {
    uint64_t batches;
    uint64_t commands;
};

struct stub {
    struct idem_port base;
    struct idem_list done; /* Of struct idem_call. */
    uint64_t calls;
};

/* There is one service in a process, and the linker gives no other way to reach it. */
static struct stub *stub;
static struct counts *counts;

static enum idem_err stub_submit(struct idem_port *port, struct idem_call *call)
{
    struct stub *self = IDEM_CONTAINER_OF(port, struct stub, base);
    struct idem_buf kept;
    char reference[32];
    self->calls += 1;
    int len = snprintf(reference, sizeof(reference), "bench-%011llu",
                       (unsigned long long)self->calls); /* It fits. */
    idem_buf_init(&kept, call->memory, sizeof(call->memory));
    call->evidence = (struct idem_evidence){
        .source = idem_call_source(call->kind),
        .outcome = IDEM_OUTCOME_SUCCESS,
        .entry = idem_buf_keep(&kept, call->effect.entry),
        .account = idem_buf_keep(&kept, call->effect.account),
        .region = idem_buf_keep(&kept, call->effect.region),
        .effect_id = idem_buf_keep(&kept, call->effect.id),
        .amount_minor = call->effect.amount_minor,
        .currency = idem_buf_keep(&kept, call->effect.currency),
        .reference =
            idem_buf_keep(&kept, (struct idem_str){ .data = reference, .len = (size_t)len }),
    };
    IDEM_ASSERT(!kept.full);
    idem_list_push(&self->done, &call->node);
    return IDEM_OK;
}

static void stub_reap(struct idem_port *port, struct idem_list *ret_done)
{
    idem_list_join(ret_done, &IDEM_CONTAINER_OF(port, struct stub, base)->done);
}

static void stub_cancel(struct idem_port *port, struct idem_call *call)
{
    (void)port; /* A call is answered already. */
    (void)call;
}

static void stub_destroy(struct idem_port *port)
{
    free(IDEM_CONTAINER_OF(port, struct stub, base));
    stub = NULL;
}

static const struct idem_port_ops stub_ops = {
    .submit = stub_submit,
    .reap = stub_reap,
    .cancel = stub_cancel,
    .destroy = stub_destroy,
};

enum idem_err port_create_here(struct idem_http_client *client,
                               const struct idem_provider_entry *entries,
                               size_t entry_count,
                               size_t calls_max,
                               struct idem_port **ret_port)
{
    if (getenv("BENCH_HTTP") != NULL) {
        return port_create_real(client, entries, entry_count, calls_max, ret_port);
    }
    stub = calloc(1, sizeof(*stub));
    if (stub == NULL) {
        return IDEM_E_SYSTEM;
    }
    stub->base.ops = &stub_ops;
    *ret_port = &stub->base;
    return IDEM_OK;
}

/* Maps the file of counts; without one they are counted for nobody. */
static struct counts *counts_open(void)
{
    static struct counts nobody;
    const char *path = getenv("BENCH_COUNTS");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return &nobody;
    }
    void *memory = MAP_FAILED;
    if (ftruncate(fd, sizeof(struct counts)) == 0) {
        memory = mmap(NULL, sizeof(struct counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    (void)close(fd); /* The mapping keeps the file. */
    return memory == MAP_FAILED ? &nobody : memory;
}

void step_here(struct idem_engine *engine)
{
    if (counts == NULL) {
        counts = counts_open();
    }
    do {
        step_real(engine);
    } while (stub != NULL && stub->done.count > 0);
    const struct idem_engine_stats *stats = idem_engine_stats(engine);
    counts->batches = stats->batches;
    counts->commands = stats->commands;
}
