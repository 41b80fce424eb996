package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/ui"
)

// interview asks the questions of init. With yes it asks nothing, and each answer is the standard one.
type interview struct {
	d *deps
	*asker
	yes   bool
	fresh bool // nothing has been made yet
}

// say writes a paragraph, broken at words, and the items of a list below their own text.
func (a *interview) say(format string, args ...any) {
	if a.yes {
		return
	}
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		for _, part := range ui.Wrap(line, ui.Columns(a.d.Stderr), hanging(line)) {
			_, _ = fmt.Fprintln(a.d.Stderr, printable(part))
		}
	}
}

// hanging returns the column at which the text of an item such as "  file     appends to a file" begins, 0 for other lines.
func hanging(line string) int {
	if !strings.HasPrefix(line, "  ") {
		return 0
	}
	body := strings.TrimLeft(line, " ")
	if _, text, found := strings.Cut(body, "  "); found {
		body = strings.TrimLeft(text, " ")
	}
	return ui.Width(line) - ui.Width(body)
}

// value asks for a value until check accepts it. An empty line is the standard answer, if there is one. It fails if the input ends without
// a valid answer, or is interrupted.
func (a *interview) value(ctx context.Context, text, standard string, check func(answer string) error) (string, error) {
	if a.yes {
		return standard, check(standard)
	}
	question := text + ": "
	if standard != "" {
		question = fmt.Sprintf("%s [%s]: ", text, standard)
	}
	if ui.Width(question) > ui.Columns(a.d.Stderr)-20 { // the answer needs room on the line
		a.say("%s", text)
		question = fmt.Sprintf("[%s]: ", standard)
	}
	var refused error
	for {
		line, err := a.ask(ctx, a.d.Stderr, question)
		ended := errors.Is(err, io.EOF)
		switch {
		case err != nil && !ended:
			return "", err
		case ended && line == "":
			_, _ = fmt.Fprintln(a.d.Stderr)
			return "", a.ended(text)
		}
		answer := cmp.Or(strings.TrimSpace(line), standard)
		if refused = check(answer); refused == nil {
			return answer, nil
		}
		if ended {
			return "", usage("%s: %v", strings.ToLower(text), refused)
		}
		a.say("%s", refused.Error())
	}
}

// ended returns the error of an input that ends at a question.
func (a *interview) ended(text string) error {
	made := "the next ollim init continues here"
	if a.fresh {
		made = "nothing was created"
	}
	return &inputEnded{&usageError{fmt.Sprintf("%s: the input has ended, and %s", strings.ToLower(text), made)}}
}

// inputEnded is the error of an input that ends at a question. No further question is asked then.
type inputEnded struct{ error }

func (e *inputEnded) Unwrap() error { return e.error }

// sure asks a question whose answer is yes or no.
func (a *interview) sure(ctx context.Context, text string, standard bool) (bool, error) {
	word := map[bool]string{true: "yes", false: "no"}
	answer, err := a.value(ctx, text, word[standard], func(answer string) error {
		if !slices.Contains([]string{"y", "yes", "n", "no"}, strings.ToLower(answer)) {
			return errors.New("write yes or no")
		}
		return nil
	})
	return err == nil && strings.ToLower(answer)[0] == 'y', err
}

// hidden asks for a secret. It returns "" for an empty line, and always if yes is set.
func (a *interview) hidden(ctx context.Context, text string) (string, error) {
	if a.yes {
		return "", nil
	}
	line, err := a.askHidden(ctx, a.d.Stderr, text+": ")
	if errors.Is(err, io.EOF) && line == "" {
		return "", a.ended(text)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// completed is value. If the answer is only a keyword, such as file of file:PATH, it asks for the rest.
func (a *interview) completed(ctx context.Context, text, standard string, details map[string]detail, check func(answer string) error) (string, error) {
	answer, err := a.value(ctx, text, standard, func(answer string) error {
		if _, asked := details[answer]; asked {
			return nil
		}
		return check(answer)
	})
	d, incomplete := details[answer]
	if err != nil || !incomplete {
		return answer, err
	}
	rest, err := a.value(ctx, d.text, d.standard, func(rest string) error { return check(answer + ":" + rest) })
	return answer + ":" + rest, err
}

// detail is the question for what follows a keyword.
type detail struct{ text, standard string }
