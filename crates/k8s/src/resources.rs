//! Lists of quantities.

use crate::error::Problems;
use crate::lenient::{Amount, Lenient, Shape, Shaped};
use std::collections::BTreeMap;
use tutti_model::{ModelError, Quantity, Resource, ResourceList};

/// A map from resource to quantity, as written.
pub(crate) type Amounts = Lenient<BTreeMap<String, Lenient<Amount>>>;

/// `resources` of a container or pod. Limits are not read: the API server has made requests of them already.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Requirements {
    pub(crate) requests: Amounts,
}

impl Shaped for Requirements {
    const SHAPE: Shape = Shape::Object;
}

/// Reads what can be read of a list; everything else becomes a problem below `field`.
pub(crate) fn read_amounts(amounts: &Amounts, field: &str, problems: &mut Problems) -> ResourceList {
    let Some(amounts) = problems.or_default(amounts.at(field)) else {
        return ResourceList::new();
    };
    let mut list = ResourceList::new();
    for (name, amount) in amounts {
        let resource = Resource::new(name);
        match read_amount(&resource, amount) {
            Ok(Some(amount)) => list.set(resource, amount),
            Ok(None) => {}
            Err(error) => problems.push(error.within(field)),
        }
    }
    list
}

/// As [`read_amounts`], of the requests.
pub(crate) fn read_requests(
    requirements: &Lenient<Requirements>,
    field: &str,
    problems: &mut Problems,
) -> ResourceList {
    problems.or_default(requirements.at(field)).map_or_else(ResourceList::new, |requirements| {
        problems.within(
            || field.to_owned(),
            |problems| read_amounts(&requirements.requests, "requests", problems),
        )
    })
}

fn read_amount(resource: &Resource, amount: &Lenient<Amount>) -> Result<Option<i64>, ModelError> {
    let Some(Amount(text)) = amount.at(resource.name())? else {
        return Ok(None);
    };
    let quantity: Quantity = text.parse().map_err(|error: ModelError| error.within(resource.name()))?;
    resource.checked_amount_of(quantity).map(Some)
}
