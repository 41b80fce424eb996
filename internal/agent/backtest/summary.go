package backtest

import (
	"fmt"
	"math"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Summary counts verdicts.
type Summary struct {
	Runs      int `json:"asked"`
	Same      int `json:"same"`           // the same decisions, with the same texts
	Different int `json:"different_text"` // the same decisions with other texts
	Facts     int `json:"other_facts"`    // of Different: the judge found other facts in the texts
	Unsure    int `json:"unsure"`         // of Different: the judge contradicted itself
	Missed    int `json:"missed"`
	Extra     int `json:"extra"`
	Undecided int `json:"undecided"`

	// with a confidence of 95 %, at most this part of all runs like these decide otherwise, 0 to 1
	Bound float64 `json:"bound"`

	Was Use `json:"use_then"` // of the runs that were decided
	Is  Use `json:"use_now"`
}

// Summarize counts the verdicts of the changed requests, or those of the unchanged ones.
func Summarize(list []Verdict, baseline bool) (s Summary) {
	for _, v := range list {
		if v.Baseline != baseline {
			continue
		}
		s.Runs++
		switch v.Result {
		case Same:
			s.Same++
		case Different:
			s.Different++
			switch v.Facts {
			case OtherFacts:
				s.Facts++
			case Unsure:
				s.Unsure++
			}
		case Missed:
			s.Missed++
		case Extra:
			s.Extra++
		default:
			s.Undecided++
			s.Is.Cost += v.Is.Cost
			continue
		}
		s.Was, s.Is = s.Was.add(v.Was), s.Is.add(v.Is)
	}
	s.Bound = Bound(s.Missed+s.Extra, s.Decided())
	return s
}

// String says what the counts show.
func (s Summary) String() string {
	text := fmt.Sprintf("%d of %s decided the same", s.Same+s.Different, plaintext.Count(s.Decided(), "run"))
	if s.Different > 0 {
		text += fmt.Sprintf(" (%d with other texts", s.Different)
		if s.Facts+s.Unsure > 0 {
			text += fmt.Sprintf("; according to the judge, %d have other facts and %d are unsure", s.Facts, s.Unsure)
		}
		text += ")"
	}
	text += fmt.Sprintf(", %d missed, %d extra, %d undecided", s.Missed, s.Extra, s.Undecided)
	if s.Decided() > 0 {
		text += fmt.Sprintf("; up to %.0f %% of such runs may decide otherwise (at 95 %%)", 100*s.Bound)
	}
	return text
}

// Decided returns how many runs were decided.
func (s Summary) Decided() int { return s.Runs - s.Undecided }

// Few is the number of runs below which a backtest says little: with four that decide the same, half of all may decide otherwise.
const Few = 5

// Weak reports whether too few runs were decided to judge.
func (s Summary) Weak() bool { return s.Decided() < Few || s.Undecided > s.Decided() }

func (u Use) add(v Use) Use {
	return Use{u.Cost + v.Cost, u.Seconds + v.Seconds, u.Usage.Add(v.Usage)}
}

// Bound returns the upper end of the exact one-sided confidence interval of 95 % for a share, of which wrong among n were seen.
func Bound(wrong, n int) float64 {
	if wrong >= n {
		return 1
	}
	low, high := float64(wrong)/float64(n), 1.0
	for range 50 {
		p := (low + high) / 2
		if atMost(wrong, n, p) > 0.05 {
			low = p
		} else {
			high = p
		}
	}
	return high
}

// atMost returns the probability of at most k hits in n tries, each with the probability p.
func atMost(k, n int, p float64) (sum float64) {
	term := math.Pow(1-p, float64(n))
	for i := range k + 1 {
		sum += term
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return sum
}

// Select returns the newest runs of a job that can be asked again: they reached a model, came to their own end, and are recorded. It
// returns at most most of them, 0 for all, and none that began before since.
func Select(runs runlog.Book, asked request.Book, job string, most int, since time.Time) (ids []string, err error) {
	for r, err := range runs.Since(since) {
		if err != nil {
			return ids, err
		}
		own := r.Outcome == runlog.OK || r.Outcome == runlog.Unreported || r.Outcome == runlog.Expired
		if r.Job != job || !r.OfJob() || !own || r.Private || r.Requests == 0 {
			continue
		}
		if exchanges, err := asked.Exchanges(r.ID); err != nil || len(exchanges) == 0 {
			continue
		}
		if ids = append(ids, r.ID); len(ids) == most {
			break
		}
	}
	return ids, nil
}

// Estimate returns what the requests of a plan are likely to cost, in USD: the tokens of the recorded runs at the prices of the models that
// are asked, and of the judge for each run. known is false if a price is not known.
func (p Plan) Estimate(runs runlog.Book, table model.Table) (usd float64, known bool) {
	known = true
	add := func(name string, u runlog.Usage) {
		cost, priced := table.Resolve(name).Cost(model.Tokens(u))
		usd, known = usd+cost, known && priced
	}
	for _, id := range p.Runs {
		r, err := runs.Load(id)
		if err != nil {
			continue
		}
		if p.Changes() {
			name := p.Model
			if name == "" {
				name = r.ModelUsed
			}
			add(name, r.Usage)
		}
		if p.Baseline {
			add(r.ModelUsed, r.Usage)
		}
		if p.Judge != "" {
			add(p.Judge, judged(r.Usage.Out))
		}
	}
	return usd, known
}

// judged returns what the judge uses if it compares texts of a number of tokens with such of the same length: in both orders, after an
// instruction of about judgeTokens, and answers in a word.
func judged(text int) runlog.Usage {
	const judgeTokens, word = 100, 10
	return runlog.Usage{In: 2 * (2*text + judgeTokens), Out: 2 * word}
}
