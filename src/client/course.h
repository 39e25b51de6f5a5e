/*
 * course.h - the course of one run: what to do after each answer, and how it ends.
 *
 * Pure: no clock, no dice, no I/O. The rule behind every line: an intent is in *doubt* from the
 * moment a request of it may have been carried out, and only the server's word that nothing of the
 * whole key happened or will (REFUSED) takes the doubt away. A request that was turned away, or
 * never left, adds no doubt and takes none away. A run that is DONE is done; any other that ends in
 * doubt is UNKNOWN, and without doubt REFUSED.
 *
 *               SEND ----answer----> next()  --AGAIN, allowed----> SEND after a pause
 *                                      |     --RUNNING, address--> ASK after a pause
 *                                      |     --not allowed, doubt, can be asked--> ASK
 *                                      |     --else--> END
 *               ASK  ----answer----> next()  (the same, with two limits:)
 *                                      |     --"no record"--> no send any more; ASK, few times
 *                                      |     --STOP--> END
 *
 * Not allowed: the deadline is near, the window of the key ends, the shared budget is empty, or the
 * rule says STOP. A run that is *closing* only asks: nothing makes it send again. It closes when
 * something is not allowed, when an answer to a send says to ask instead (but for RUNNING: there
 * the server is at it, and may yet give it back), and when a question finds no record: a server
 * that has forgotten, or was set back to a backup, would carry out a repeat once more.
 *
 * UNSURE, STOP to a send ends at once: whose record that is, is not certain, so neither would be
 * what a question finds.
 */
#ifndef IDEM_CLIENT_COURSE_H
#define IDEM_CLIENT_COURSE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/meaning.h"
#include "idem/client_verdict.h"

/*
 * Questions of a closing run that get no usable answer. If the budget is what closed it, one: many
 * intents are then in the same outage, and questions are load, too.
 */
#define IDEM_COURSE_LAST_ASKS 3

struct idem_course {
    bool doubt;        /* Something of this key may have been carried out. */
    bool left;         /* A byte of a request of this run may have left. */
    bool closing;      /* No more sends in this run. */
    unsigned failures; /* Since the server last said RUNNING: what the pause grows with. */
    unsigned waits; /* How often it said RUNNING: what the pause before the next look grows with. */
    unsigned last_asks;
    enum idem_client_reason reason; /* Why it is closing: the first that did. */
};

/* How things stand at the moment of a decision. Times: microseconds of one monotonic clock. */
struct idem_course_scene {
    int64_t now_us;        /* Not negative. */
    int64_t deadline_us;   /* Of the run. */
    int64_t send_until_us; /* No send begins at or after it: deadline less a reserve for asking. */
    int64_t window_us;     /* Until when the key is known; INT64_MIN: nobody can say. */
    bool budget;           /* The shared budget would allow a repeat. */
    bool can_ask;          /* The dialect has operations, or an address was given by an answer. */
    bool unsent;           /* Not one byte of the request that was just read has left. */
    uint64_t dice;         /* Random. */
    int64_t backoff_first_us;
    int64_t backoff_max_us;
};

enum idem_move_kind {
    IDEM_MOVE_NONE = 0,
    IDEM_MOVE_SEND,
    IDEM_MOVE_ASK,
    IDEM_MOVE_END
};

/*
 * A move holds for its pause and no longer. Whoever makes a SEND late (a busy loop, a suspended
 * machine, no free call) has to see again that send_until_us and window_us are still ahead, or
 * bound the send by them as its not_after_us. A repeat is paid for when it is decided, before its
 * pause: what was allowed to one must not be counted on by the next.
 */
struct idem_move {
    enum idem_move_kind kind;
    int64_t pause_us; /* Before SEND or ASK. */
    bool repeat;      /* A SEND that the budget must pay for: not one that the server asked for. */
    enum idem_client_outcome outcome; /* Of END. */
    enum idem_client_reason reason;   /* Of END. */
    bool over;                        /* Of END: the server's word is final for this key. */
};

/* A run begins. `doubt`: the key may have been used before this run. */
void idem_course_begin(struct idem_course *course, bool doubt);

/* The first move: SEND, or if that is not allowed ASK or END. */
struct idem_move idem_course_first(struct idem_course *course,
                                   const struct idem_course_scene *scene);

/* What follows a send or a question (`asked`) that was read as `reading`. */
struct idem_move idem_course_next(struct idem_course *course,
                                  const struct idem_course_scene *scene,
                                  struct idem_reading reading,
                                  bool asked);

/*
 * The run is ended from outside, or by its deadline (`reason`). `on_wire`: a send was given to the
 * transport, and it does not say that not one byte of it left. A reason for which the run was
 * already closing stays, unless it is stopped.
 */
struct idem_move idem_course_cut(struct idem_course *course,
                                 bool on_wire,
                                 enum idem_client_reason reason);

#endif /* IDEM_CLIENT_COURSE_H */
