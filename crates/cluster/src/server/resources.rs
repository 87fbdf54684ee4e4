//! Verbs on collections, objects and subresources: what HTTP says, turned into reads and writes.

use super::accept::{self, Form};
use super::create::check_namespace;
use super::delete::{DeleteOptions, Deleted};
use super::list::Selection;
use super::managers::{self, Ownership};
use super::path::{Sub, Target};
use super::propagation::Propagation;
use super::query::Query;
use super::update::Candidate;
use super::{ApiServer, WriteOptions, apply, body, list, metadata, reply, rules, watch};
use crate::error::ApiError;
use crate::kinds;
use crate::patch::{self, PatchKind};
use crate::registry::Access;
use crate::reviews;
use crate::store::Object;
use axum::extract::Request;
use axum::response::Response;
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;

/// A request about a resource, its body read.
struct Call<'a> {
    server: &'a Arc<ApiServer>,
    target: Target,
    query: Query,
    form: Form,
    media_type: String,
    /// What Kubernetes calls the options of this kind of write.
    options_kind: &'static str,
    /// Who writes.
    manager: String,
    body: axum::body::Bytes,
}

/// Answers a request about a resource.
pub(super) async fn answer(
    server: &Arc<ApiServer>,
    target: Target,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let query = Query::parse(head.uri.query())?;
    if target.sub == Some(Sub::Log) {
        return if head.method == Method::GET {
            log(server, &target)
        } else {
            Err(ApiError::method_not_allowed())
        };
    }
    if target.id.resource().access == Access::Asked {
        return review(&target, &query, &head, body).await;
    }
    let form = if head.method == Method::GET && query.flag("watch") == Some(true) {
        accept::stream_form(&head.headers, &query)?
    } else {
        accept::form(&head.headers, &query)?
    };
    let body = if head.method == Method::GET { axum::body::Bytes::new() } else { body::read(body).await? };
    let options_kind = match head.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        _ => "PatchOptions",
    };
    let manager = managers::manager(options_kind, &query, &head.headers)?;
    let media_type = body::media_type(&head.headers);
    let call = Call { server, target, query, form, media_type, options_kind, manager, body };
    match (&call.target.sub, &call.target.name) {
        (None, None) => call.collection(&head.method),
        (None, Some(_)) => call.item(&head.method),
        (Some(Sub::Status | Sub::Resize), _) => match head.method {
            Method::GET => call.get(),
            Method::PUT => call.put(),
            Method::PATCH => call.patch(),
            _ => Err(ApiError::method_not_allowed()),
        },
        (Some(Sub::Binding), _) if head.method == Method::POST => call.bind(),
        (Some(Sub::Eviction), _) if head.method == Method::POST => call.evict(),
        (Some(Sub::Scale), _) => call.scale(&head.method),
        (Some(Sub::Binding | Sub::Eviction | Sub::Log), _) => Err(ApiError::method_not_allowed()),
    }
}

/// Answers a request for a watch that its path asks for.
pub(super) fn watch(
    server: &Arc<ApiServer>,
    target: Target,
    request: &Request,
) -> Result<Response, ApiError> {
    if *request.method() != Method::GET || target.sub.is_some() {
        return Err(ApiError::method_not_allowed());
    }
    let query = Query::parse(request.uri().query())?;
    let form = accept::stream_form(request.headers(), &query)?;
    watch::watch(server, target, &query, form)
}

/// Answers a question; nothing is stored.
async fn review(
    target: &Target,
    query: &Query,
    head: &http::request::Parts,
    body: axum::body::Body,
) -> Result<Response, ApiError> {
    if head.method != Method::POST || target.name.is_some() {
        return Err(ApiError::method_not_allowed());
    }
    let resource = target.id.resource();
    let body = body::read(body).await?;
    let (mut object, repeated) = body::decode_noting(&body::media_type(&head.headers), &body)?;
    let warnings = body::admit(target, &mut object, &repeated, query.field_validation("CreateOptions")?)?;
    if resource.namespaced {
        check_namespace(target, &object)?;
        metadata::set(&mut object, "namespace", json!(target.namespace));
    }
    let mut response = reply::json(201, &reviews::answer(resource, object)?);
    reply::warn(response.headers_mut(), &warnings);
    Ok(response)
}

/// What an object that cannot be read is called by the write that it came with.
fn as_patch(error: ApiError) -> ApiError {
    if error.reason == "BadRequest" { ApiError::invalid_patch(&error.message) } else { error }
}

fn log(server: &ApiServer, target: &Target) -> Result<Response, ApiError> {
    let key = target.key()?;
    if server.store.get(target.id, &key).is_none() {
        return Err(ApiError::not_found(target.id.resource(), &key.name));
    }
    Ok(reply::body(200, "text/plain", "This pod is simulated: no process runs, so there are no logs.\n"))
}

impl Call<'_> {
    fn collection(&self, method: &Method) -> Result<Response, ApiError> {
        match *method {
            Method::GET if self.query.flag("watch") == Some(true) => {
                watch::watch(self.server, self.target.clone(), &self.query, self.form)
            }
            Method::GET => self.server.list(&self.target, &self.query, self.form),
            Method::POST => self.post(),
            Method::DELETE => self.delete_collection(),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn item(&self, method: &Method) -> Result<Response, ApiError> {
        match *method {
            Method::GET => self.get(),
            Method::PUT => self.put(),
            Method::PATCH => self.patch(),
            Method::DELETE => self.delete(),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn write_options(&self) -> Result<WriteOptions<'_>, ApiError> {
        Ok(WriteOptions {
            dry_run: self.query.dry_run(self.options_kind)?,
            validation: self.query.field_validation(self.options_kind)?,
            manager: &self.manager,
        })
    }

    fn reply(&self, code: u16, object: &Object, warnings: &[String]) -> Response {
        let now = self.server.store.environment().now();
        let mut response = reply::object(code, &self.target, object, self.form, now);
        reply::warn(response.headers_mut(), warnings);
        response
    }

    fn get(&self) -> Result<Response, ApiError> {
        let key = self.target.key()?;
        let object = self.server.store.get(self.target.id, &key);
        let object = object.ok_or_else(|| ApiError::not_found(self.target.id.resource(), &key.name))?;
        Ok(self.reply(200, &object, &[]))
    }

    fn post(&self) -> Result<Response, ApiError> {
        let options = self.write_options()?;
        let (mut object, repeated) = body::decode_noting(&self.media_type, &self.body)?;
        let warnings = body::admit(&self.target, &mut object, &repeated, options.validation)?;
        let created = self.server.create(&self.target, object, options, None)?;
        Ok(self.reply(201, &created, &warnings))
    }

    fn put(&self) -> Result<Response, ApiError> {
        let resource = self.target.id.resource();
        let options = self.write_options()?;
        let (mut object, repeated) = body::decode_noting(&self.media_type, &self.body)?;
        let base = managers::take_supplied(&mut object);
        let warnings = body::admit(&self.target, &mut object, &repeated, options.validation)?;
        let key = self.target.key()?;
        if self.target.sub.is_none()
            && rules::allows_create_on_update(resource)
            && self.server.store.get(self.target.id, &key).is_none()
        {
            if metadata::text(&object, "name").is_empty() {
                metadata::set(&mut object, "name", json!(&*key.name));
            }
            if *metadata::text(&object, "name") != *key.name {
                return Err(ApiError::bad_request(
                    "the name of the object does not match the name on the URL",
                ));
            }
            let collection = Target { name: None, ..self.target.clone() };
            let created = self.server.create(&collection, object, options, None)?;
            return Ok(self.reply(201, &created, &warnings));
        }
        let hub = kinds::to_hub(resource, self.target.version, object)?;
        let mut hub = Some(hub);
        let updated = self.server.update(&self.target, options, |_| {
            // Kept for another attempt, which is rare.
            let value = hub.take().unwrap_or_default();
            hub = Some(value.clone());
            Ok(Candidate { value, ownership: Ownership::Tracked { base: base.clone() } })
        })?;
        Ok(self.reply(200, &updated, &warnings))
    }

    fn patch(&self) -> Result<Response, ApiError> {
        let resource = self.target.id.resource();
        let options = self.write_options()?;
        let kind = PatchKind::from_media_type(&self.media_type)?;
        if kind == PatchKind::Apply {
            return self.apply(options);
        }
        if kind == PatchKind::Strategic && resource.custom.is_some() {
            return Err(body::unsupported(
                "strategic merge patches are for built-in kinds; application/json-patch+json, \
                 application/merge-patch+json and application/apply-patch+yaml are supported",
            ));
        }
        if self.query.get("force").is_some() {
            return Err(apply::force_forbidden());
        }
        let patch = patch::Patch::decode(kind, &self.body)?;
        let mut warnings = Vec::new();
        let updated = self.server.update(&self.target, options, |stored| {
            let version = self.target.version;
            let mut object = if patch.concerns_managed_fields() {
                stored.complete_in_version(version)
            } else {
                stored.in_version(version)
            };
            let object = Arc::make_mut(&mut object);
            patch.apply(resource, version, object)?;
            let base = managers::take_supplied(object);
            warnings = body::admit(&self.target, object, &[], options.validation).map_err(as_patch)?;
            let value = kinds::to_hub(resource, version, object.take())?;
            Ok(Candidate { value, ownership: Ownership::Tracked { base } })
        })?;
        Ok(self.reply(200, &updated, &warnings))
    }

    fn apply(&self, options: WriteOptions<'_>) -> Result<Response, ApiError> {
        if self.query.get("fieldManager").is_none() {
            return Err(apply::manager_required());
        }
        let applied = body::decode(body::APPLIED, &self.body)?;
        let force = self.query.flag("force").unwrap_or(false);
        let mut warnings = Vec::new();
        match self.server.apply(&self.target, &applied, force, options, &mut warnings)? {
            apply::Outcome::Created(object) => Ok(self.reply(201, &object, &warnings)),
            apply::Outcome::Updated(object) => Ok(self.reply(200, &object, &warnings)),
        }
    }

    fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        let body = if self.body.iter().all(u8::is_ascii_whitespace) {
            Value::Null
        } else {
            body::decode(&self.media_type, &self.body)?
        };
        let mut options = DeleteOptions::from_body(&body)?;
        if let Some(seconds) = self.query.number("gracePeriodSeconds")? {
            options.grace_seconds = options.grace_seconds.or(Some(seconds));
        }
        let policy = Propagation::parse(self.query.get("propagationPolicy").unwrap_or_default())?;
        options.propagation = options.propagation.or(policy);
        options.dry_run |= self.query.dry_run("DeleteOptions")?;
        Ok(options)
    }

    fn delete(&self) -> Result<Response, ApiError> {
        let resource = self.target.id.resource();
        let options = self.delete_options()?;
        let mut response = match self.server.delete(&self.target, &options)? {
            Deleted::Pending(object) => self.reply(200, &object, &[]),
            Deleted::Gone(object) if rules::returns_deleted_object(resource) => self.reply(200, &object, &[]),
            Deleted::Gone(object) => {
                let uid = object.value().pointer("/metadata/uid").cloned();
                reply::success(200, resource, &object.key().name, uid.as_ref())
            }
        };
        self.warn_of_orphans(&options, &mut response);
        Ok(response)
    }

    fn warn_of_orphans(&self, options: &DeleteOptions, response: &mut Response) {
        let warning = rules::deletion_warning(self.target.id.resource());
        if let Some(warning) = warning.filter(|_| options.propagation.is_none()) {
            reply::warn(response.headers_mut(), &[warning.to_owned()]);
        }
    }

    fn delete_collection(&self) -> Result<Response, ApiError> {
        let resource = self.target.id.resource();
        let scoped = !resource.namespaced || !self.target.namespace.is_empty();
        if !scoped || !rules::allows_delete_together(resource) {
            return Err(ApiError::method_not_allowed());
        }
        let options = self.delete_options()?;
        let selection = Selection::from_query(resource, &self.query)?;
        let selected = self.server.select(&self.target, &selection, None, None, None);
        let selected = selected.map_err(|error| list::expired(&error))?;
        for object in &selected.objects {
            let target = self.target.named(&object.key().name);
            match self.server.delete(&target, &options) {
                Ok(_) => {}
                // Somebody else was faster, or the object must stay; the others still go.
                Err(error) if matches!(error.code, 403 | 404) => {}
                Err(error) => return Err(error),
            }
        }
        // What was found, as it was found.
        let mut response = self.server.render_list(&self.target, self.form, selected);
        self.warn_of_orphans(&options, &mut response);
        Ok(response)
    }

    fn scale(&self, method: &Method) -> Result<Response, ApiError> {
        let scale = match *method {
            Method::GET => self.server.scale(&self.target)?,
            Method::PUT => {
                let asked = body::decode(&self.media_type, &self.body)?;
                expect_kind(&asked, "autoscaling/v1", "Scale")?;
                self.server.put_scale(&self.target, &asked, self.write_options()?)?
            }
            Method::PATCH => {
                let kind = PatchKind::from_media_type(&self.media_type)?;
                let patch = patch::Patch::decode(kind, &self.body)?;
                self.server.patch_scale(&self.target, &patch, self.write_options()?)?
            }
            _ => return Err(ApiError::method_not_allowed()),
        };
        Ok(reply::json(200, &scale))
    }

    fn bind(&self) -> Result<Response, ApiError> {
        let binding = body::decode(&self.media_type, &self.body)?;
        expect_kind(&binding, "v1", "Binding")?;
        // By the older path, only the binding names the pod.
        let name = self.target.name.as_deref().unwrap_or_else(|| metadata::text(&binding, "name"));
        let target = Target { name: Some(name.to_owned()), ..self.target.clone() };
        self.server.bind(&target, &binding, self.write_options()?)?;
        Ok(reply::json(201, &plain_success(201)))
    }

    fn evict(&self) -> Result<Response, ApiError> {
        let eviction = body::decode(&self.media_type, &self.body)?;
        expect_kind(&eviction, "policy/v1", "Eviction")?;
        self.server.evict(&self.target, &eviction, self.query.dry_run(self.options_kind)?)?;
        Ok(reply::json(201, &plain_success(201)))
    }
}

fn plain_success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}

/// The body of a subresource must be of its kind, if it says what it is.
fn expect_kind(object: &Value, api_version: &str, kind: &str) -> Result<(), ApiError> {
    for (field, expected) in [("apiVersion", api_version), ("kind", kind)] {
        match object.get(field) {
            None | Some(Value::Null) => {}
            Some(found) if found == expected => {}
            Some(found) => {
                return Err(ApiError::bad_request(format!(
                    "the {field} in the object ({found}) does not match the one that the path expects ({expected})"
                )));
            }
        }
    }
    Ok(())
}
