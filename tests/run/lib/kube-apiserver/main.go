// SPDX-License-Identifier: Apache-2.0

// An API server for tests, made of what Kubernetes publishes of its own: the registry, watch cache
// and etcd are the real ones; there is no kubelet, no scheduler and no admission. It has pods, with
// /status, and namespaces.
//
//	kube-apiserver -data FOLDER -listen ADDRESS -cert FILE -key FILE -tokens FILE -manifest FILE
//	kube-apiserver -check FILE
//
// tokens: lines "TOKEN USER", read for each request. The user "admin" may do all, the user "fusee"
// what the ClusterRole in the manifest allows. With -check each document of the manifest is decoded
// into the type of its kind, and a member that the type does not have is an error.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	jsonyaml "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func orDie(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// ---- the manifest ----

func documents(path string) []runtime.Object {
	text, err := os.ReadFile(path)
	orDie(err)
	strict := jsonyaml.NewSerializerWithOptions(jsonyaml.DefaultMetaFactory, scheme, scheme,
		jsonyaml.SerializerOptions{Yaml: true, Strict: true})
	var all []runtime.Object
	for r := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		one, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		orDie(err)
		obj, kind, err := strict.Decode(one, nil, nil)
		if err != nil {
			log.Fatalf("document %d: %v", len(all)+1, err)
		}
		fmt.Println("decoded:", kind.Kind)
		all = append(all, obj)
	}
}

// ---- who may do what ----

// tokenFile is read for each request: a test changes it, as tokens expire.
type tokenFile string

func (path tokenFile) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	text, err := os.ReadFile(string(path))
	if err != nil {
		return nil, false, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if words := strings.Fields(line); len(words) == 2 && words[0] == token {
			return &authenticator.Response{User: &user.DefaultInfo{Name: words[1]}}, true, nil
		}
	}
	return nil, false, nil
}

// role allows what the rules of a ClusterRole do; resource names and URLs are in none of ours.
type role []rbacv1.PolicyRule

func (r role) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	name := a.GetUser().GetName()
	if name == "admin" || slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	for _, rule := range r {
		if name == "fusee" && a.IsResourceRequest() && slices.Contains(rule.Verbs, a.GetVerb()) &&
			slices.Contains(rule.APIGroups, a.GetAPIGroup()) && slices.Contains(rule.Resources, a.GetResource()) {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "no rule of the role allows it", nil
}

// ---- objects ----

// strategy is asked by the registry before it writes.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced, ofStatus bool
}

func (s strategy) NamespaceScoped() bool { return s.namespaced }

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if p, ok := obj.(*corev1.Pod); ok {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	}
}

// As in a cluster, a PUT of a pod does not change its status, and one of its status nothing else.
func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	was := old.(*corev1.Pod)
	if !s.ofStatus {
		p.Status = was.Status
		return
	}
	now := p.Status
	was.DeepCopyInto(p)
	p.Status = now
}

func (strategy) Validate(context.Context, runtime.Object) field.ErrorList              { return nil }
func (strategy) ValidateUpdate(_ context.Context, _, _ runtime.Object) field.ErrorList { return nil }
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string             { return nil }
func (strategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string      { return nil }
func (strategy) Canonicalize(runtime.Object)                                           {}
func (strategy) AllowCreateOnUpdate() bool                                             { return false }
func (strategy) AllowUnconditionalUpdate() bool                                        { return true }

// graceful marks a pod on a node as deleted first; the kubelet removes it by a second DELETE
// without a grace period.
type graceful struct{ strategy }

func (graceful) CheckGracefulDelete(_ context.Context, obj runtime.Object, o *metav1.DeleteOptions) bool {
	if o.GracePeriodSeconds == nil {
		thirty := int64(30)
		o.GracePeriodSeconds = &thirty
	}
	if obj.(*corev1.Pod).Spec.NodeName == "" {
		*o.GracePeriodSeconds = 0
	}
	return true
}

// status is the subresource of pods: it can be read and updated.
type status struct{ pods *registry.Store }

func (s status) New() runtime.Object { return s.pods.New() }
func (s status) Destroy()            {}
func (s status) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return s.pods.Get(ctx, name, o)
}
func (s status) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, o *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.pods.Update(ctx, name, info, create, update, false, o)
}

// attributes are what selectors can name.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	set := fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()}
	if p, ok := obj.(*corev1.Pod); ok {
		set["spec.nodeName"] = p.Spec.NodeName
	}
	return m.GetLabels(), set, nil
}

func newStore(from generic.RESTOptionsGetter, one string, namespaced bool, obj, list func() runtime.Object) *registry.Store {
	many := corev1.Resource(one + "s")
	how := strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, namespaced: namespaced}
	s := &registry.Store{
		NewFunc: obj, NewListFunc: list,
		DefaultQualifiedResource: many, SingularQualifiedResource: corev1.Resource(one),
		PredicateFunc: func(l labels.Selector, f fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: l, Field: f, GetAttrs: attributes}
		},
		CreateStrategy: how, UpdateStrategy: how, DeleteStrategy: how,
		TableConvertor: rest.NewDefaultTableConvertor(many),
	}
	if one == "pod" {
		s.DeleteStrategy = graceful{how}
	}
	orDie(s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: from, AttrFunc: attributes}))
	return s
}

// ---- the scheme ----

func register() {
	orDie(corev1.AddToScheme(scheme))
	orDie(appsv1.AddToScheme(scheme))
	orDie(rbacv1.AddToScheme(scheme))
	// a cluster's server converts to types of its own, which are not published
	inner := schema.GroupVersion{Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(inner, &corev1.Pod{}, &corev1.PodList{}, &corev1.Namespace{}, &corev1.NamespaceList{})
	_, known, _ := attributes(&corev1.Pod{})
	for _, kind := range []string{"Pod", "Namespace"} {
		orDie(scheme.AddFieldLabelConversionFunc(corev1.SchemeGroupVersion.WithKind(kind), func(label, value string) (string, string, error) {
			if !known.Has(label) {
				return "", "", fmt.Errorf("%q is no field that can be selected by", label)
			}
			return label, value, nil
		}))
	}
}

// schemas says of each type that it is an object: those of a cluster are generated.
func schemas(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := map[string]common.OpenAPIDefinition{}
	add := func(name string) { // the builder writes into each: they share nothing
		var s spec.Schema
		s.Type = []string{"object"}
		s.Extensions = spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}
		all[name] = common.OpenAPIDefinition{Schema: s}
	}
	for _, t := range scheme.AllKnownTypes() {
		add(t.PkgPath() + "." + t.Name())
	}
	add("k8s.io/apimachinery/pkg/apis/meta/v1.Patch")
	add("k8s.io/apimachinery/pkg/version.Info")
	return all
}

// ---- the server ----

// startEtcd returns its address. Its data outlive the process, so the peer's address, which is a part of
// them, is always the same.
func startEtcd(folder string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	orDie(err)
	client := url.URL{Scheme: "http", Host: ln.Addr().String()}
	orDie(ln.Close())
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.UnsafeNoFsync = folder, "error", true
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.WatchProgressNotifyInterval = time.Second // bookmarks need it
	e, err := embed.StartEtcd(c)
	orDie(err)
	<-e.Server.ReadyNotify()
	return client.String()
}

func configure(etcd string, ln net.Listener, cert, key, tokens string, rules role) *server.Config {
	c := server.NewConfig(codecs)
	c.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := openapi.NewDefinitionNamer(scheme)
	c.OpenAPIConfig = server.DefaultOpenAPIConfig(schemas, namer)
	c.OpenAPIV3Config = server.DefaultOpenAPIV3Config(schemas, namer)

	at := ln.Addr().(*net.TCPAddr)
	tls := options.NewSecureServingOptions().WithLoopback()
	tls.Listener, tls.BindAddress, tls.BindPort = ln, at.IP, at.Port
	tls.ServerCert.CertKey = options.CertKey{CertFile: cert, KeyFile: key}
	orDie(tls.ApplyTo(&c.SecureServing, &c.LoopbackClientConfig))
	c.Authentication.Authenticator = bearertoken.New(tokenFile(tokens))
	c.Authorization.Authorizer = rules

	backend := storagebackend.NewDefaultConfig("/registry", codecs.LegacyCodec(corev1.SchemeGroupVersion))
	backend.Transport.ServerList = []string{etcd}
	orDie(options.NewEtcdOptions(backend).ApplyTo(c))
	return c
}

func serve(c *server.Config) error {
	s, err := c.Complete(nil).New("tests", server.NewEmptyDelegate())
	if err != nil {
		return err
	}
	pods := newStore(c.RESTOptionsGetter, "pod", true, func() runtime.Object { return &corev1.Pod{} },
		func() runtime.Object { return &corev1.PodList{} })
	ofStatus := *pods
	ofStatus.UpdateStrategy = strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, namespaced: true, ofStatus: true}
	group := server.NewDefaultAPIGroupInfo("", scheme, runtime.NewParameterCodec(scheme), codecs)
	group.PrioritizedVersions = []schema.GroupVersion{corev1.SchemeGroupVersion}
	group.VersionedResourcesStorageMap["v1"] = map[string]rest.Storage{
		"pods": pods, "pods/status": status{&ofStatus},
		"namespaces": newStore(c.RESTOptionsGetter, "namespace", false, func() runtime.Object { return &corev1.Namespace{} },
			func() runtime.Object { return &corev1.NamespaceList{} }),
	}
	if err := s.InstallLegacyAPIGroup("/api", &group); err != nil {
		return err
	}
	return s.PrepareRun().RunWithContext(server.SetupSignalContext())
}

func main() {
	check := flag.String("check", "", "")
	data, listen := flag.String("data", "", ""), flag.String("listen", "127.0.0.1:0", "")
	cert, key := flag.String("cert", "", ""), flag.String("key", "", "")
	tokens, manifest := flag.String("tokens", "", ""), flag.String("manifest", "", "")
	flag.Parse()
	register()
	if *check != "" {
		documents(*check)
		return
	}
	var rules role
	for _, obj := range documents(*manifest) {
		if r, ok := obj.(*rbacv1.ClusterRole); ok {
			rules = append(rules, r.Rules...)
		}
	}
	ln, err := net.Listen("tcp", *listen)
	orDie(err)
	etcd := startEtcd(*data)
	fmt.Printf("listening on https://%s\n", ln.Addr())
	orDie(serve(configure(etcd, ln, *cert, *key, *tokens, rules)))
}
