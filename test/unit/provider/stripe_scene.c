/*
 * Scenes for the tests of the Stripe adapter: one effect of each kind.
 */
#include "unit/provider/stripe_scene.h"

#include "lib/test.h"
#include "provider/stripe.h"
#include "provider/stripe_internal.h"

static const char *const our_ids[IDEM_EFFECT_KIND_COUNT] = {
    [IDEM_EFFECT_KIND_CHARGE] = CHARGE,   [IDEM_EFFECT_KIND_AUTHORIZE] = AUTHORIZE,
    [IDEM_EFFECT_KIND_CAPTURE] = CAPTURE, [IDEM_EFFECT_KIND_CANCEL] = CANCEL,
    [IDEM_EFFECT_KIND_REFUND] = REFUND,
};

void scene_encode(struct scene *scene)
{
    struct idem_buf buf;

    idem_buf_init(&buf, scene->request, sizeof(scene->request));
    idem_stripe_adapter.encode(&scene->order, &buf);
    assert_false(buf.full);
    scene->effect.request = idem_buf_str(&buf);
}

void scene_fill(struct scene *scene, enum idem_effect_kind kind)
{
    bool pays = idem_effect_kind_makes_payment(kind);

    *scene = (struct scene){
        .effect = {
            .kind = kind,
            .id = idem_str_from(our_ids[kind]),
            .amount_minor = 10000,
            .currency = IDEM_STR("EUR"),
        },
        .order = { .order_no = IDEM_STR("o/1"), .method = IDEM_STR("pm_card_visa") },
    };
    scene->order.effect = &scene->effect;
    if (!pays) {
        scene->order.payment_effect_id = IDEM_STR(AUTHORIZE);
        scene->order.payment_reference = IDEM_STR("pi_1");
    }
    scene_encode(scene);
}

void scene_call(struct scene *scene, enum idem_call_kind call, unsigned step)
{
    scene->course = (struct idem_wire_course){
        .kind = call,
        .effect = &scene->effect,
        .step = step,
        .so_far = {
            .outcome = call == IDEM_CALL_SEND ? IDEM_OUTCOME_NOT_EXECUTED : IDEM_OUTCOME_UNKNOWN,
            .amount_minor = -1,
        },
    };
    if (step != IDEM_STRIPE_BEGIN) { /* Something has been said before, and it was no end. */
        bool first = step == IDEM_STRIPE_CONFIRM || step == IDEM_STRIPE_ACT;
        bool sent = !first && call == IDEM_CALL_SEND;
        scene->course.so_far.outcome = sent ? IDEM_OUTCOME_UNKNOWN : scene->course.so_far.outcome;
    }
    if (step != IDEM_STRIPE_BEGIN && idem_effect_kind_makes_payment(scene->effect.kind)) {
        scene->course.so_far.reference = IDEM_STR("pi_1");
    }
}
