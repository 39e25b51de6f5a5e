/*
 * callback.h - what a provider says by itself: an event as it arrived, judged and made evidence.
 *
 * The signature is judged before anything else is looked at, then the age, and only then is the
 * event read. Whatever is wrong with it, the verdict says so and nothing is to be done with it but
 * counting. A verdict of OK comes with evidence that is good for the one path and no more: whether
 * id, amount, currency and account are those of an effect of ours is for the core to compare.
 *
 * Here is also what whoever answers must know: each provider wants to hear its own words, and wants
 * them only once the event is durable.
 *
 * Threads: the engine's.
 */
#ifndef IDEM_PROVIDER_CALLBACK_H
#define IDEM_PROVIDER_CALLBACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "core/command.h"

struct idem_provider_entry;

#define IDEM_CALLBACK_BODY_MAX    ((size_t)64 * 1024) /* A longer one is unreadable. */
#define IDEM_CALLBACK_SECRETS_MAX 4                   /* Of one entry, at once. */
#define IDEM_CALLBACK_MEMORY_MAX  1536                /* Text of the evidence. */

enum idem_callback_verdict {
    IDEM_CALLBACK_OK = 0,
    IDEM_CALLBACK_IGNORED,    /* Signed, and no business of ours. */
    IDEM_CALLBACK_FORGED,     /* No signature, or one that none of the secrets made. */
    IDEM_CALLBACK_STALE,      /* Signed, too long ago. */
    IDEM_CALLBACK_FUTURE,     /* Signed for a time that is still to come. */
    IDEM_CALLBACK_UNREADABLE, /* Signed, and not what the provider's documentation says. */
    IDEM_CALLBACK_NO_ENTRY,   /* Nobody listens under this name. */
    IDEM_CALLBACK_VERDICT_COUNT
};

const char *idem_callback_verdict_name(enum idem_callback_verdict verdict); /* "forged" ... */

/* An event as it arrived. */
struct idem_callback_in {
    /* The value of the only field `name`, its name without case; empty: none, or several. */
    struct idem_str (*field)(const void *head, struct idem_str name);
    const void *head;
    struct idem_str body; /* Raw. */
    int64_t now_us;       /* Wall time. */
};

/* Where it arrived: the entry, and what its adapter judges with. */
struct idem_callback_place {
    struct idem_digester *digester;
    const struct idem_str *secrets; /* One of them is enough: several while they are changed. */
    size_t secret_count;
    struct idem_str account;
    struct idem_str credential; /* What requests bear: only for what it says about itself. */
};

/* When a reply is sent, and to what. */
enum idem_callback_answer {
    IDEM_CALLBACK_TAKEN = 0, /* Durable, or ignored: the provider need not say it again. */
    IDEM_CALLBACK_REFUSED,   /* Forged, stale, future or unreadable. */
    IDEM_CALLBACK_LATER,     /* Not durable: the provider must say it again. */
    IDEM_CALLBACK_ANSWER_COUNT
};

struct idem_callback_reply {
    uint16_t status;
    const char *content_type; /* NULL: no body. */
    const char *body;
};

/* What one provider protocol supplies. */
struct idem_adapter_callbacks {
    /*
     * Judges and reads. Pure. OK fills outcome, effect_id (one of our form), amount_minor (-1:
     * none), currency, reference, order_no, payment_effect_id, code, message, event_id,
     * happened_us, and account if the provider names one. Text goes into `buf`, also what was
     * encrypted, or is borrowed from `in`; where `buf` is full it is UNREADABLE. Never NO_ENTRY.
     */
    enum idem_callback_verdict (*verify)(const struct idem_callback_in *in,
                                         const struct idem_callback_place *place,
                                         struct idem_buf *buf,
                                         struct idem_evidence *ret_evidence);
    struct idem_callback_reply replies[IDEM_CALLBACK_ANSWER_COUNT];
};

/* What became of one. */
struct idem_callback {
    enum idem_callback_verdict verdict;
    const struct idem_callback_reply *replies; /* By answer; NULL for NO_ENTRY. */
    struct idem_evidence evidence;             /* Of OK. Text lies in `memory`. */
    char memory[IDEM_CALLBACK_MEMORY_MAX];
};

/* Whoever takes events from the wire knows this much of providers. */
struct idem_callback_reader {
    void (*read)(struct idem_callback_reader *reader,
                 struct idem_str entry,
                 const struct idem_callback_in *in,
                 struct idem_callback *ret_callback);
};

/*
 * Gives the reader of configured entries, which are borrowed as long as it: their secrets may
 * change between two reads.
 */
enum idem_err idem_callback_reader_create(const struct idem_provider_entry *entries,
                                          size_t entry_count,
                                          struct idem_callback_reader **ret_reader,
                                          struct idem_error *reterr) IDEM_MUST_CHECK;

/* Accepts NULL. */
void idem_callback_reader_destroy(struct idem_callback_reader *reader);

#endif /* IDEM_PROVIDER_CALLBACK_H */
