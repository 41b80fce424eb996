package overview

import (
	"context"
	"errors"
	"strings"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/app"
)

// TellBill tells the owner what is wrong with the bill, and when it no longer is. It is called once a day.
func TellBill(ctx context.Context, h app.Home) error {
	bill := NewBill(h.Disk.Now(), h.Config.Zone)
	if _, err := bill.Read(h.Runs); err != nil {
		return err
	}
	month, err := monthOf(h)
	if err != nil {
		return err
	}
	book := h.Runner(false).Notify()
	if month.Spent >= month.Limit { // the limit itself is a cause now
		err = book.Drop(ctx, Finding{Subject: MonthSubject}.cause().Key())
	}
	var causes []notify.Cause
	for _, f := range bill.Findings(month) {
		causes = append(causes, f.cause())
	}
	return errors.Join(err, book.Keep(ctx, notify.Bill, causes, "is within bounds again"))
}

func (f Finding) cause() notify.Cause {
	c := notify.Cause{Kind: notify.Bill, Subject: f.Subject, Name: f.Name, Text: strings.ToUpper(f.Text[:1]) + f.Text[1:], Remedy: f.Remedy()}
	for i, id := range f.Jobs {
		c.Jobs = append(c.Jobs, notify.Affected{ID: id, Name: f.names[i]})
	}
	return c
}
