/*
 * Both the program of level one and the library of level two count with this.
 */
#include "torture/fault.h"

#include <errno.h>
#include <sqlite3.h>

#include "base/bug.h"

#define ONCE false
#define EVER true

static const char *const call_names[TORTURE_CALL_COUNT] = {
#define TORTURE_CALL(symbol, name) [TORTURE_CALL_##symbol] = (name),
#include "torture/fault.def" // IWYU pragma: keep
};

static const struct torture_fault_entry entries[TORTURE_FAULT_COUNT] = {
#define TORTURE_FAULT(symbol, name, call, code, modes) \
    [TORTURE_FAULT_##symbol] = { (name), TORTURE_CALL_##call, (code), (modes) },
#include "torture/fault.def" // IWYU pragma: keep
};

/* The process's; set once before anything is armed. */
static struct torture_state *current;

const char *torture_call_name(enum torture_call call)
{
    IDEM_ASSERT(call > TORTURE_CALL_NONE && call < TORTURE_CALL_COUNT);
    return call_names[call];
}

const struct torture_fault_entry *torture_fault_entry(enum torture_fault fault)
{
    IDEM_ASSERT(fault > TORTURE_FAULT_NONE && fault < TORTURE_FAULT_COUNT);
    return &entries[fault];
}

void torture_attach(struct torture_state *state)
{
    current = state;
}

void torture_arm(enum torture_fault fault, uint64_t at, bool ever)
{
    const struct torture_fault_entry *entry = torture_fault_entry(fault);
    current->call = entry->call;
    current->code = entry->code;
    current->ever = ever ? 1 : 0;
    current->at = at;
    atomic_store(&current->fired, 0);
    for (size_t i = 0; i < TORTURE_COUNTS; i++) {
        atomic_store(&current->counts[i], 0);
    }
    atomic_store(&current->armed, 1);
}

void torture_disarm(void)
{
    atomic_store(&current->armed, 0);
}

void torture_resume(void)
{
    atomic_store(&current->armed, 1);
}

int torture_fires(enum torture_call call)
{
    struct torture_state *state = current;
    if (state == NULL || atomic_load(&state->armed) == 0) {
        return 0;
    }
    uint64_t number = atomic_fetch_add(&state->counts[call], 1) + 1;
    bool due = state->call == call && state->at > 0 &&
               (number == state->at || (state->ever != 0 && number > state->at));
    if (!due) {
        return 0;
    }
    (void)atomic_fetch_add(&state->fired, 1);
    return state->code;
}

size_t torture_half(size_t size)
{
    return size > 1 ? size / 2 : size;
}
