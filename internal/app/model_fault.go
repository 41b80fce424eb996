package app

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/model"
)

// ModelFault is something wrong with a model that is used.
type ModelFault struct {
	Model   string   `json:"model"`             // as the service is asked for it
	Fault   string   `json:"fault"`             // one of those below
	Engine  string   `json:"engine"`            // through which it is used
	UsedBy  []string `json:"used_by"`           // as in ModelUse.By
	Retires string   `json:"retires,omitempty"` // day, if one is known
	Text    string   `json:"text"`              // follows the name of the model
	Remedy  string   `json:"remedy"`            // a command, or what to do

	jobs []notify.Affected
}

// The values of ModelFault.Fault. A model has at most one of the first three, and at most one of the other two.
const (
	Unlisted = "unlisted" // the service does not list it
	Retired  = "retired"  // the day of its retirement has come
	Retiring = "retiring" // its retirement is announced
	Unpriced = "unpriced" // the table has no price
	Repriced = "repriced" // the service's list has other prices than the table
)

// ModelFaults returns what is wrong with the models that are used, by the lists of their services and the table. atShell is as for Runner.
func (h Home) ModelFaults(uses []ModelUse, lists ModelLists, atShell bool) (faults []ModelFault) {
	for rest := uses; len(rest) > 0; {
		same := func(u ModelUse) bool { return u.Model.ID == rest[0].Model.ID && u.Engine == rest[0].Engine }
		var these, others []ModelUse
		for _, u := range rest {
			if same(u) {
				these = append(these, u)
			} else {
				others = append(others, u)
			}
		}
		list, known := lists.of(these[0].Engine)
		s, _ := h.serviceOf(these[0].Engine, atShell) // an error is reported where the list is asked for
		x := examined{
			uses: these, m: these[0].Model, list: list, known: known && list.Service == s.host(),
			local: these[0].Engine == engine.Native && isLocal(s.BaseURL), today: h.Disk.Now().In(h.Config.Zone).Format(time.DateOnly),
		}
		faults, rest = append(faults, x.faults()...), others
	}
	return faults
}

// examined is a model that is used through one engine.
type examined struct {
	uses  []ModelUse
	m     model.Model
	list  ModelList
	known bool // there is a list of the service
	local bool // the service runs on this machine, and is free
	today string
}

func (x examined) faults() (faults []ModelFault) {
	listed, found := provider.Find(x.list.Models, x.m.ID)
	retires := cmp.Or(listed.Retires, x.m.Retires)
	switch {
	case x.known && !found:
		faults = append(faults, x.fault(Unlisted, retires, "is not in the list of models of "+x.list.Service))
	case retires != "" && retires <= x.today:
		faults = append(faults, x.fault(Retired, retires, "was retired on "+retires))
	case retires != "":
		faults = append(faults, x.fault(Retiring, retires, "will be retired on "+retires))
	case listed.Ending:
		faults = append(faults, x.fault(Retiring, "", "is marked as deprecated by "+x.list.Service))
	}
	switch p := listed.Price; {
	case !x.m.Priced && !x.local:
		f := x.fault(Unpriced, "", "has no price in the table, so its cost is not known")
		f.Remedy = x.reprice(p)
		faults = append(faults, f)
	case x.m.Priced && p != nil && x.differs(*p):
		f := x.fault(Repriced, "", fmt.Sprintf("costs %s by the list of %s, and %s by the table", priceOf(p), x.list.Service,
			priceOf(&provider.Price{In: x.m.Price.In, Out: x.m.Price.Out, CacheRead: x.m.Price.CacheRead})))
		f.Remedy = x.reprice(p)
		faults = append(faults, f)
	}
	return faults
}

func (x examined) fault(kind, retires, text string) ModelFault {
	f := ModelFault{Model: x.m.ID, Fault: kind, Engine: x.uses[0].Engine, Retires: retires, Text: text, Remedy: x.uses[0].remedy}
	for _, u := range x.uses {
		f.UsedBy = append(f.UsedBy, u.By)
		if u.Name != "" {
			f.jobs = append(f.jobs, notify.Affected{ID: u.By, Name: u.Name})
		}
	}
	return f
}

func (x examined) differs(p provider.Price) bool {
	differ := func(a, b float64) bool { return math.Abs(a-b) > 1e-6 }
	return differ(p.In, x.m.Price.In) || differ(p.Out, x.m.Price.Out) || p.CacheRead >= 0 && differ(p.CacheRead, x.m.Price.CacheRead)
}

// priceOf describes a price.
func priceOf(p *provider.Price) string {
	text := "$" + number(p.In) + " in and $" + number(p.Out) + " out"
	if p.CacheRead >= 0 {
		text += ", $" + number(p.CacheRead) + " from the cache,"
	}
	return strings.TrimSuffix(text, ",") + " for a million tokens"
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// reprice returns the command that gives the model a price in the table; nil stands for a price that is not known.
func (x examined) reprice(p *provider.Price) string {
	if _, err := model.Known().With([]string{x.m.ID}); err != nil { // the table cannot have a model of that name
		return x.uses[0].remedy
	}
	words := []string{x.m.ID}
	if x.m.Known && x.m.Entry != x.m.ID { // it becomes a model of its own
		for key, n := range map[string]int{"window": x.m.Window, "output": x.m.Output} {
			if n > 0 {
				words = append(words, key+"="+strconv.Itoa(n))
			}
		}
		slices.Sort(words[1:])
	}
	if p == nil {
		words = append(words, "in=USD", "out=USD")
	} else {
		words = append(words, "in="+number(p.In), "out="+number(p.Out))
		if p.CacheRead >= 0 {
			words = append(words, "cache-read="+number(p.CacheRead))
		}
	}
	return "echo '" + strings.Join(words, " ") + "' | ollim model update -"
}

// betweenModelChecks is how often a tick asks the services for their lists.
const betweenModelChecks = 7 * 24 * time.Hour

// TellModels notifies the owner of what is wrong with the models that are used, and of the end of it. It asks the services for their lists
// if they were not asked within the last seven days; a service that cannot be asked is noted in the cache only.
func (h Home) TellModels(ctx context.Context) error {
	uses, err := h.ModelUses()
	if err != nil {
		return err
	}
	lists := h.ModelLists()
	if ago := h.Disk.Now().Sub(lists.At); len(uses) > 0 && (ago < 0 || ago >= betweenModelChecks) {
		if lists, err = h.AskModels(ctx, uses, false); err != nil && ctx.Err() != nil {
			return err
		}
	}
	var causes []notify.Cause
	for _, f := range h.ModelFaults(uses, lists, false) {
		causes = append(causes, f.cause())
	}
	return h.Runner(false).Notify().Keep(ctx, notify.Models, causes, "needs no change any more")
}

func (f ModelFault) cause() notify.Cause {
	c := notify.Cause{
		Kind: notify.Models, Subject: f.Engine + " " + f.Model + " " + f.Fault, Name: "The model " + f.Model,
		Text: "The model " + f.Model + " " + f.Text, Jobs: f.jobs, Remedy: "`" + f.Remedy + "`; `ollim model check` shows all",
	}
	if others := f.settings(); len(others) > 0 {
		c.Text += "; it is set by " + strings.Join(others, ", ")
	}
	return c
}

// settings returns the uses that are not jobs.
func (f ModelFault) settings() []string {
	return slices.DeleteFunc(slices.Clone(f.UsedBy), func(by string) bool {
		return slices.ContainsFunc(f.jobs, func(j notify.Affected) bool { return j.ID == by })
	})
}

// ListedModel is what is known of a model besides the table.
type ListedModel struct {
	Listed  *bool    // the service of some engine lists it; nil: no list is in the cache
	Retires string   // day, from a list or the table
	UsedBy  []string // as in ModelUse.By
}

// ListedModels returns what the lists in the cache and the uses say of each line of a table, and of each model that is used and has no
// line, by Model.Entry or else Model.ID.
func (h Home) ListedModels(table model.Table) (map[string]ListedModel, []string, error) {
	uses, err := h.ModelUses()
	if err != nil {
		return nil, nil, err
	}
	found, lists, known := map[string]provider.Listed{}, h.ModelLists(), false
	for _, l := range lists.Lists {
		known = known || !l.Listed.IsZero()
		for _, m := range l.Models {
			found[cmp.Or(table.Resolve(m.ID).Entry, m.ID)] = m
		}
	}
	all, strange := map[string]ListedModel{}, []string{}
	add := func(key string, m model.Model) {
		listed, isListed := found[key]
		l := ListedModel{Retires: cmp.Or(listed.Retires, m.Retires)}
		if known {
			l.Listed = &isListed
		}
		all[key] = l
	}
	for _, m := range table.Models() {
		add(m.ID, m)
	}
	for _, u := range uses {
		key := cmp.Or(u.Model.Entry, u.Model.ID)
		if _, done := all[key]; !done {
			add(key, u.Model)
			strange = append(strange, key)
		}
		l := all[key]
		l.UsedBy = append(l.UsedBy, u.By)
		all[key] = l
	}
	return all, strange, nil
}

// UpdateModels merges lines in the form of models.txt into the setting models of config.yaml. name is that of the text in errors.
func (h Home) UpdateModels(ctx context.Context, name, text string) error {
	return h.edit(ctx, func(path string) error { return config.MergeModels(path, name, text) })
}
