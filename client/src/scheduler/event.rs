//! Events of a framework, as an enum: the protobuf event without its unset fields.

use tepui_proto::mesos::v1::scheduler::{self as wire, event::Type};
use tepui_proto::mesos::v1::{InverseOffer, Offer, OfferID, OperationStatus, TaskStatus};

/// An event from the master, or about the link to it. Heartbeats are handled by the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Subscribed, or subscribed again after [`Event::Disconnected`]. Earlier offers are void.
    Subscribed(wire::event::Subscribed),
    /// The link is lost; the session subscribes again by itself.
    Disconnected,
    Offers(Vec<Offer>),
    InverseOffers(Vec<InverseOffer>),
    Rescind(OfferID),
    RescindInverseOffer(OfferID),
    Update(TaskStatus),
    UpdateOperation(OperationStatus),
    Message(wire::event::Message),
    /// An agent or an executor is gone.
    Failure(wire::event::Failure),
    /// The master ended the session, for this reason. Nothing follows.
    Error(String),
}

impl Event {
    /// `None` for a heartbeat, for an event of a newer master, and for one whose content is missing.
    pub(super) fn from_wire(event: wire::Event) -> Option<Self> {
        Some(match event.r#type? {
            Type::SUBSCRIBED => Event::Subscribed(event.subscribed.into_option()?),
            Type::OFFERS => Event::Offers(event.offers.into_option()?.offers),
            Type::INVERSE_OFFERS => Event::InverseOffers(event.inverse_offers.into_option()?.inverse_offers),
            Type::RESCIND => Event::Rescind(event.rescind.into_option()?.offer_id.into_option()?),
            Type::RESCIND_INVERSE_OFFER => Event::RescindInverseOffer(
                event.rescind_inverse_offer.into_option()?.inverse_offer_id.into_option()?,
            ),
            Type::UPDATE => Event::Update(event.update.into_option()?.status.into_option()?),
            Type::UPDATE_OPERATION_STATUS => {
                Event::UpdateOperation(event.update_operation_status.into_option()?.status.into_option()?)
            }
            Type::MESSAGE => Event::Message(event.message.into_option()?),
            Type::FAILURE => Event::Failure(event.failure.into_option()?),
            Type::ERROR => Event::Error(event.error.into_option()?.message),
            Type::HEARTBEAT | Type::UNKNOWN => return None,
        })
    }
}
