/*
 * stripe_scene.h - an effect as the Stripe adapter stores it, and a call about it.
 */
#ifndef IDEM_TEST_UNIT_PROVIDER_STRIPE_SCENE_H
#define IDEM_TEST_UNIT_PROVIDER_STRIPE_SCENE_H

#include "provider/adapter.h"

#define CHARGE    "c0123456789abcdefghjkmnpqrs"
#define AUTHORIZE "a0123456789abcdefghjkmnpqrs"
#define CAPTURE   "k0123456789abcdefghjkmnpqrs"
#define CANCEL    "v0123456789abcdefghjkmnpqrs"
#define REFUND    "r0123456789abcdefghjkmnpqrs"
#define OTHER     "c9876543210abcdefghjkmnpqrs"

/* An effect of 100.00 EUR, its request as the adapter stores it. */
struct scene {
    struct idem_effect effect;
    struct idem_effect_order order;
    char request[IDEM_REQUEST_MAX];
    char text[IDEM_REQUEST_MAX];
    struct idem_wire_course course;
};

void scene_fill(struct scene *scene, enum idem_effect_kind kind);

/* Stores the order anew, after something in it was changed. */
void scene_encode(struct scene *scene);

/* A call that has come to `step`; a payment has Stripe's number pi_1 by then. */
void scene_call(struct scene *scene, enum idem_call_kind call, unsigned step);

#endif /* IDEM_TEST_UNIT_PROVIDER_STRIPE_SCENE_H */
