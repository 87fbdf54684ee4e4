package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// questionBytesMax bounds one line of input.
const questionBytesMax = 64 << 20

// leftOut are the default plugins that look at what a question does not carry (volumes, device claims) or that do
// something other than judge nodes.
var leftOut = []string{
	names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone,
	names.DynamicResources, names.DefaultPreemption,
}

// question is one line of input: a cluster, and a pod that wants a node.
type question struct {
	Nodes      []*v1.Node      `json:"nodes"`
	Namespaces []*v1.Namespace `json:"namespaces"`
	Pods       []*v1.Pod       `json:"pods"`
	Pod        *v1.Pod         `json:"pod"`
}

// verdict is one line of output: what kube-scheduler thinks of each node.
type verdict struct {
	// Invalid says why the API server would not have taken an object. Nothing else is said then.
	Invalid string `json:"invalid,omitempty"`
	// Feasible are the nodes that pass, by name.
	Feasible []string `json:"feasible,omitempty"`
	// Rejected are the others.
	Rejected map[string]rejection `json:"rejected,omitempty"`
	// Scores of the feasible nodes by plugin, as they enter the sum: normalised and weighted.
	Scores map[string]map[string]int64 `json:"scores,omitempty"`
}

// rejection is why a node does not pass.
type rejection struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons,omitempty"`
}

func verdictsCommand() *cobra.Command {
	return &cobra.Command{
		Use:           "verdicts",
		Short:         "Judge nodes by kube-scheduler's own plugins: questions in, verdicts out, one JSON object a line",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return answerAll(command.Context(), os.Stdin, os.Stdout)
		},
	}
}

func answerAll(ctx context.Context, in io.Reader, out io.Writer) error {
	judge, err := newJudge(ctx)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, questionBytesMax)
	answers := bufio.NewWriter(out)
	encoder := json.NewEncoder(answers)
	for number := 1; lines.Scan(); number++ {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		answer, err := judge.answer(ctx, &asked)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
		if err := answers.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

// currentSnapshot lets one set of plugins look at one cluster after another.
type currentSnapshot struct{ *cache.Snapshot }

// judge holds the plugins of the default profile.
type judge struct {
	framework framework.Framework
	snapshot  *currentSnapshot
	informers informers.SharedInformerFactory
}

func newJudge(ctx context.Context) (*judge, error) {
	metrics.Register()
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := &defaults.Profiles[0]
	profile.Plugins.MultiPoint.Enabled = slices.DeleteFunc(profile.Plugins.MultiPoint.Enabled, func(plugin config.Plugin) bool {
		return slices.Contains(leftOut, plugin.Name)
	})
	// Never called: informers are filled by hand and not started.
	client, err := clientset.NewForConfig(&restclient.Config{Host: "nowhere.invalid"})
	if err != nil {
		return nil, err
	}
	j := &judge{
		snapshot:  &currentSnapshot{cache.NewEmptySnapshot()},
		informers: informers.NewSharedInformerFactory(client, 0),
	}
	j.framework, err = frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(j.informers),
		frameworkruntime.WithSnapshotSharedLister(j.snapshot),
		frameworkruntime.WithParallelism(1),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the plugins: %w", err)
	}
	return j, nil
}

func (j *judge) answer(ctx context.Context, asked *question) (*verdict, error) {
	if asked.Pod == nil {
		return nil, errors.New("the question is about no pod")
	}
	if err := asked.validate(); err != nil {
		return &verdict{Invalid: err.Error()}, nil
	}
	namespaces := make([]any, len(asked.Namespaces))
	for i, namespace := range asked.Namespaces {
		namespaces[i] = namespace
	}
	if err := j.informers.Core().V1().Namespaces().Informer().GetStore().Replace(namespaces, ""); err != nil {
		return nil, err
	}
	// The scheduler does not keep pods that have ended.
	running := slices.DeleteFunc(slices.Clone(asked.Pods), func(pod *v1.Pod) bool {
		return pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	})
	j.snapshot.Snapshot = cache.NewSnapshot(running, asked.Nodes)
	return j.judgeNodes(ctx, asked)
}

// judgeNodes does what one scheduling cycle does up to scoring, for every node.
func (j *judge) judgeNodes(ctx context.Context, asked *question) (*verdict, error) {
	answer := &verdict{Feasible: []string{}, Rejected: map[string]rejection{}, Scores: map[string]map[string]int64{}}
	state := framework.NewCycleState()
	preFilter, status, _ := j.framework.RunPreFilterPlugins(ctx, state, asked.Pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, fmt.Errorf("pre-filter: %w", status.AsError())
		}
		for _, node := range asked.Nodes {
			answer.Rejected[node.Name] = rejection{Plugin: status.Plugin(), Reasons: status.Reasons()}
		}
		return answer, nil
	}
	var feasible []fwk.NodeInfo
	for _, node := range asked.Nodes {
		info, err := j.snapshot.Get(node.Name)
		if err != nil {
			return nil, err
		}
		if !preFilter.AllNodes() && !preFilter.NodeNames.Has(node.Name) {
			answer.Rejected[node.Name] = rejection{Plugin: "PreFilter", Reasons: []string{"not among the nodes that a pre-filter names"}}
			continue
		}
		status := j.framework.RunFilterPlugins(ctx, state, asked.Pod, info)
		switch {
		case status.IsSuccess():
			answer.Feasible = append(answer.Feasible, node.Name)
			feasible = append(feasible, info)
		case status.IsRejected():
			answer.Rejected[node.Name] = rejection{Plugin: status.Plugin(), Reasons: status.Reasons()}
		default:
			return nil, fmt.Errorf("filter on %s: %w", node.Name, status.AsError())
		}
	}
	slices.Sort(answer.Feasible)
	return answer, j.scoreNodes(ctx, state, asked.Pod, feasible, answer)
}

func (j *judge) scoreNodes(ctx context.Context, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, answer *verdict) error {
	if len(feasible) == 0 {
		return nil
	}
	if status := j.framework.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return fmt.Errorf("pre-score: %w", status.AsError())
	}
	scores, status := j.framework.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return fmt.Errorf("score: %w", status.AsError())
	}
	for _, node := range scores {
		byPlugin := make(map[string]int64, len(node.Scores))
		for _, score := range node.Scores {
			byPlugin[score.Name] = score.Score
		}
		answer.Scores[node.Name] = byPlugin
	}
	return nil
}

// validate refuses what a real API server would refuse, so that no verdict is about objects that cannot exist.
func (q *question) validate() error {
	for _, node := range q.Nodes {
		node = node.DeepCopy()
		corev1.SetObjectDefaults_Node(node)
		var internal core.Node
		if err := corev1.Convert_v1_Node_To_core_Node(node, &internal, nil); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
		if errs := validation.ValidateNode(&internal); len(errs) > 0 {
			return fmt.Errorf("node %s: %w", node.Name, errs.ToAggregate())
		}
	}
	for _, pod := range append(slices.Clone(q.Pods), q.Pod) {
		if errs := validatePod(pod.DeepCopy()); len(errs) > 0 {
			return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, errs.ToAggregate())
		}
	}
	return nil
}

func validatePod(pod *v1.Pod) field.ErrorList {
	corev1.SetObjectDefaults_Pod(pod)
	var internal core.Pod
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	return validation.ValidatePodCreate(&internal, options)
}
