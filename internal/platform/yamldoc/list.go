package yamldoc

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// SetList is Set for a list of texts. Of a list with an item on each line it changes only the lines of the items that differ, and adds
// items below the last one, so that comments among the items and after them stay. It sets a list of another form as a whole.
func (d *Doc) SetList(path []string, items []string) (*Doc, error) {
	list := at(d.root, path)
	if edited, ok := d.editItems(list, items); ok {
		if doc, err := d.checked(path, edited); err == nil && slices.Equal(textsOf(at(doc.root, path)), items) {
			return doc, nil
		}
	}
	return d.Set(path, items)
}

// editItems returns the text with the items of a list changed line by line; ok reports whether the list has the form for that.
func (d *Doc) editItems(list *yaml.Node, items []string) (text []byte, ok bool) {
	if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 || len(items) < len(list.Content) {
		return nil, false
	}
	last := list.Content[len(list.Content)-1]
	edited := *d
	var added strings.Builder
	for _, item := range items[len(list.Content):] {
		line, err := d.itemLine(last, item)
		if err != nil {
			return nil, false
		}
		added.WriteString(line + "\n")
	}
	edited.text = d.splice(last.Line+1, last.Line, []byte(added.String()))
	for i, node := range list.Content { // each stays on its line
		if node.Value == items[i] {
			continue
		}
		line, err := d.itemLine(node, items[i])
		if err != nil {
			return nil, false
		}
		if node.LineComment != "" {
			line += " " + node.LineComment
		}
		edited.text = edited.splice(node.Line, node.Line, []byte(line+"\n"))
	}
	return edited.text, true
}

// itemLine returns the line of an item with another text in its place.
func (d *Doc) itemLine(node *yaml.Node, text string) (string, error) {
	scalar, err := textNode(text)
	if err != nil {
		return "", err
	}
	out, err := yaml.Marshal(scalar)
	line := []rune(d.lines()[node.Line-1])
	return string(line[:node.Column-1]) + strings.TrimSuffix(string(out), "\n"), err
}

func textsOf(list *yaml.Node) (texts []string) {
	for _, item := range list.Content {
		texts = append(texts, item.Value)
	}
	return texts
}
