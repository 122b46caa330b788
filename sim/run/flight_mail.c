#include "run/flight_mail.h"

#include <stdlib.h>

#include "base/array.h"

int mail_reserve(struct mail *mail, uint32_t n)
{
    if (n <= mail->cap)
        return 0;
    if (array_grow(&mail->of, mail->n_used, n, sizeof *mail->of) < 0)
        return IFL_E_NOMEM;
    mail->cap = n;
    return 0;
}

void mail_destroy(struct mail *mail)
{
    free(mail->of);
    *mail = (struct mail){0};
}

static uint32_t take_place(struct mail *mail)
{
    const uint32_t place = mail->free;
    if (place == 0)
        return ++mail->n_used;
    mail->free = mail->of[place - 1].next;
    return place;
}

IFL_HOT void mail_put(struct mail *mail, struct mailbox *box, const struct arrival *a)
{
    ifl_assert(!mail_is_full(mail) && a->attempt == 0);
    ifl_assert(box->n == 0 || mail_last_ns(mail, box) <= a->at_ns);
    const uint32_t place = take_place(mail);
    mail->of[place - 1] = (struct mailed){
        .at_ns = a->at_ns, .note = a->note, .row = (uint32_t)a->row, .serial = (uint32_t)a->serial};
    *(box->last > 0 ? &mail->of[box->last - 1].next : &box->first) = place;
    box->last = place;
    box->n++;
    mail->n++;
}

/* Once all boxes are empty, places are given in order again: requests that come one after the other
 * lie side by side. */
static void give_place(struct mail *mail, uint32_t place)
{
    mail->of[place - 1].next = mail->free;
    mail->free = place;
    if (--mail->n == 0)
        mail->n_used = mail->free = 0;
}

IFL_HOT void mail_take(struct mail *mail, struct mailbox *box, const struct workload *workload,
                       struct arrival *a)
{
    ifl_assert(box->n > 0);
    const uint32_t place = box->first;
    const struct mailed mailed = mail->of[place - 1];
    box->first = mailed.next;
    box->last = box->first > 0 ? box->last : 0;
    box->n--;
    give_place(mail, place);
    workload_recall(workload, mailed.row, mailed.serial, mailed.at_ns, a);
    a->note = mailed.note;
}
