package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/skill"
)

func usesSkills(b *Set) error {
	if !slices.Contains(policy.Policy{Allow: parse(b.Run.Tools)}.BuiltIns(), "Skill") {
		return &Refused{"This run has no skills."}
	}
	return nil
}

func callSkill(ctx context.Context, b *Set, in struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}) (string, error) {
	use := map[string]string{"skill": in.Name}
	if in.Arguments != "" {
		use["args"] = in.Arguments
	}
	question, err := json.Marshal(use)
	if err != nil {
		return "", err
	}
	if v := b.Policy().Decide("Skill", question); !v.Allow {
		return "", &Refused{v.Reason}
	}
	text, err := b.prepared(ctx, in.Name)
	if err != nil {
		return "", err
	}
	return skill.WithArguments(text, in.Arguments), nil
}

// prepared returns a skill with its commands replaced by their output: as of the beginning of the run if its job names the skill, else as
// of now.
func (b *Set) prepared(ctx context.Context, name string) (string, error) {
	if slices.Contains(b.Run.Skills, name) {
		text, err := store.Read(b.World.Home.Run(b.Run.ID, "skills", name+".md"))
		return string(text), err
	}
	s, err := b.Skills.Find(name)
	if err != nil {
		return "", err
	}
	if len(s.Commands()) > 0 {
		if err := b.approvedSkill(ctx, name); err != nil {
			return "", err
		}
		if again, err := b.Skills.Find(name); err != nil || again.Body != s.Body {
			return "", errors.Join(errors.New("the skill has just been changed; try again"), err)
		}
	}
	return skill.Renderer{Dir: string(b.World.Home), Env: b.World.Env, Seal: b.World.Seal}.Render(ctx, s), nil
}

// approvedSkill keeps an agent from running commands that it has written into a skill.
func (b *Set) approvedSkill(ctx context.Context, name string) error {
	subject, err := b.Approvals.OfSkill(name)
	if err != nil {
		return err
	}
	ok, err := b.Approvals.Approved(subject)
	waiting := Waiting("skill:"+name, "The skill "+name, "skill:"+name, subject.Widening())
	switch {
	case err != nil:
		return err
	case ok:
		return b.Notify().Close(ctx, waiting.Key(), "is approved")
	}
	_, err = b.Notify().Open(ctx, waiting)
	return errors.Join(&Refused{fmt.Sprintf("The commands in the skill %s wait for the owner's approval: ollim approve skill:%s", name, name)}, err)
}

// Prepare renders a skill that the job names into the record of its run. After the reading and before the commands, still checks that what
// was read is what the owner approved.
func (b *Set) Prepare(ctx context.Context, name string, still func() error) error {
	s, err := b.Skills.Find(name)
	if err == nil {
		err = still()
	}
	if err != nil {
		return err
	}
	text := skill.Renderer{Dir: string(b.World.Home), Env: b.World.Env, Seal: b.World.Seal}.Render(ctx, s)
	return store.Write(b.World.Home.Run(b.Run.ID, "skills", name+".md"), []byte(text), store.Buffered)
}
