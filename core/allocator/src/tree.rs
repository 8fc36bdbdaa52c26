//! The role tree: what each role and each framework in a role holds, and who comes next by weighted shares.
//!
//! A share is the largest fraction of the cluster's total that is held of any resource, divided by the weight. Siblings
//! are ordered by share, then by how often they were given something, then by lot. The frameworks of a role compete with
//! its child roles as one more child of weight 1. Only roles and frameworks that can be offered something are in order.
//!
//! Fed by the allocator. Bookings only remember who changed; the order follows in `settle_order`, so that it stands
//! still while one agent is given away.
//! Never: agents' resources, filters.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::Rng;
use tepui_resources::{Name, Quantities, Resources, Role};

use crate::constraints::Group;
use crate::ledger::has_shared;
use crate::order::{Key, Order};
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot, NodeSlot, Slab, Slot};
use crate::{FrameworkCapabilities, MinAllocatable};

#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Slab<NodeSlot, Node>,
    pub(crate) clients: Slab<ClientSlot, Client>,
    by_role: BTreeMap<Role, NodeSlot>,
    by_pair: BTreeMap<(FrameworkSlot, NodeSlot), ClientSlot>,
    pub(crate) root: NodeSlot,
    weights: BTreeMap<Role, f64>,
    excluded: Vec<Name>,
    /// What shares are fractions of.
    totals: Quantities,
    /// Shared resources by who holds them where: each counts once.
    shared: BTreeMap<(Counted, AgentSlot), Resources>,
    /// Clients whose holdings changed since the order was settled.
    touched: Vec<ClientSlot>,
    /// Every share must be computed again.
    stale: bool,
    rng: Rng,
}

/// A role.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) role: Role,
    pub(crate) parent: Option<NodeSlot>,
    /// Child roles and clients: without any, the node goes.
    uses: u32,
    /// Held by its own frameworks, and by all of its subtree.
    pub(crate) own: Tally,
    pub(crate) subtree: Tally,
    /// Clients in order in the subtree.
    pub(crate) active: u32,
    pub(crate) children: Order<Child>,
    pub(crate) clients: Order<ClientSlot>,
    key: Key,
    own_key: Key,
    /// The last run in which something of the subtree was fresh.
    fresh_run: u64,
}

/// What competes for the share of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// The role's own frameworks.
    Own,
    Role(NodeSlot),
}

/// A framework in one role: subscribed, or at least holding something there.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) framework: FrameworkSlot,
    pub(crate) node: NodeSlot,
    pub(crate) held: Tally,
    pub(crate) subscribed: bool,
    /// May be offered something: in the order.
    pub(crate) active: bool,
    pub(crate) wishes: Wishes,
    key: Key,
    touched: bool,
    fresh_run: u64,
}

/// What a framework in a role can and will take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) capabilities: FrameworkCapabilities,
    pub(crate) groups: Option<Arc<[Group]>>,
    pub(crate) min_allocatable: Option<MinAllocatable>,
}

/// Amounts held, and how often something was given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) amount: Quantities,
    grants: u64,
}

/// Those who count a shared resource once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Client(ClientSlot),
    Own(NodeSlot),
    Subtree(NodeSlot),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Booking {
    In,
    Out,
}

impl Tree {
    pub(crate) fn new(excluded: Vec<Name>, seed: u64) -> Self {
        let mut rng = Rng::seeded(seed);
        let mut nodes = Slab::new();
        let root = nodes.insert(Node::new(Role::new(""), None, &mut rng));
        Self {
            nodes,
            clients: Slab::new(),
            by_role: BTreeMap::new(),
            by_pair: BTreeMap::new(),
            root,
            weights: BTreeMap::new(),
            excluded,
            totals: Quantities::new(),
            shared: BTreeMap::new(),
            touched: Vec::new(),
            stale: false,
            rng,
        }
    }

    pub(crate) fn client(&self, framework: FrameworkSlot, role: &Role) -> Option<ClientSlot> {
        self.by_pair.get(&(framework, *self.by_role.get(role)?)).copied()
    }

    pub(crate) fn clients_of(&self, framework: FrameworkSlot) -> Vec<ClientSlot> {
        let all = (framework, NodeSlot::new(0))..=(framework, NodeSlot::new(u32::MAX));
        self.by_pair.range(all).map(|(_, client)| *client).collect()
    }

    pub(crate) fn role_of(&self, client: ClientSlot) -> &Role {
        &self.nodes[self.clients[client].node].role
    }

    pub(crate) fn ensure_client(&mut self, framework: FrameworkSlot, role: &Role) -> ClientSlot {
        let node = self.ensure_node(role);
        if let Some(client) = self.by_pair.get(&(framework, node)) {
            return *client;
        }
        self.nodes[node].uses += 1;
        let client = self.clients.insert(Client::new(framework, node, &mut self.rng));
        self.by_pair.insert((framework, node), client);
        client
    }

    /// Forgets a client that is not subscribed and holds nothing, and roles that nobody uses then. True if it went.
    pub(crate) fn drop_if_unused(&mut self, slot: ClientSlot) -> bool {
        let client = &self.clients[slot];
        let unused = !client.subscribed && client.held.amount.is_empty();
        if unused {
            self.set_active(slot, false);
            let client = self.clients.remove(slot);
            self.by_pair.remove(&(client.framework, client.node));
            self.touched.retain(|touched| *touched != slot);
            self.drop_use(client.node);
        }
        unused
    }

    fn drop_use(&mut self, slot: NodeSlot) {
        let node = &mut self.nodes[slot];
        node.uses -= 1;
        if node.uses == 0
            && let Some(parent) = node.parent
        {
            let node = self.nodes.remove(slot);
            self.by_role.remove(&node.role);
            self.drop_use(parent);
        }
    }

    fn ensure_node(&mut self, role: &Role) -> NodeSlot {
        if let Some(node) = self.by_role.get(role) {
            return *node;
        }
        let parent = role.ancestors().next().map(Role::from);
        let parent = parent.map_or(self.root, |parent| self.ensure_node(&parent));
        self.nodes[parent].uses += 1;
        let node = self.nodes.insert(Node::new(role.clone(), Some(parent), &mut self.rng));
        self.by_role.insert(role.clone(), node);
        node
    }

    /// Puts a client into the order, or takes it out.
    pub(crate) fn set_active(&mut self, slot: ClientSlot, active: bool) {
        if self.clients[slot].active == active {
            return;
        }
        self.settle_order();
        self.clients[slot].active = active;
        let (key, at) = (self.clients[slot].key, self.clients[slot].node);
        let node = &mut self.nodes[at];
        match active {
            true => node.clients.insert(key, slot),
            false => node.clients.remove(key, slot),
        }
        match (active, node.clients.len()) {
            (true, 1) => node.children.insert(node.own_key, Child::Own),
            (false, 0) => node.children.remove(node.own_key, Child::Own),
            (true | false, _) => (),
        }
        self.count_active(at, active);
    }

    fn count_active(&mut self, at: NodeSlot, active: bool) {
        let node = &mut self.nodes[at];
        node.active = if active { node.active + 1 } else { node.active - 1 };
        let (count, key) = (node.active, node.key);
        let Some(parent) = node.parent else { return };
        match (active, count) {
            (true, 1) => self.nodes[parent].children.insert(key, Child::Role(at)),
            (false, 0) => self.nodes[parent].children.remove(key, Child::Role(at)),
            (true | false, _) => (),
        }
        self.count_active(parent, active);
    }

    /// Says that nothing but this client changed for the agents that are looked at in `run`.
    pub(crate) fn mark_fresh(&mut self, client: ClientSlot, run: u64) {
        self.clients[client].fresh_run = run;
        let mut next = Some(self.clients[client].node);
        while let Some(at) = next {
            self.nodes[at].fresh_run = run;
            next = self.nodes[at].parent;
        }
    }

    pub(crate) fn set_weights(&mut self, weights: &BTreeMap<Role, f64>) {
        self.weights.extend(weights.iter().map(|(role, weight)| (role.clone(), *weight)));
        self.stale = true;
    }

    pub(crate) fn weight(&self, role: &Role) -> f64 {
        self.weights.get(role).copied().unwrap_or(1.0)
    }

    pub(crate) fn totals(&self) -> &Quantities {
        &self.totals
    }

    pub(crate) fn change_totals(&mut self, less: &Quantities, more: &Quantities) {
        if less != more {
            self.totals += more;
            self.totals -= less;
            self.stale = true;
        }
    }
}

/// Bookings.
impl Tree {
    /// The client holds more of an agent.
    pub(crate) fn book_in(&mut self, client: ClientSlot, agent: AgentSlot, resources: &Resources) {
        self.book(client, agent, resources, Booking::In);
    }

    /// The client holds less of an agent.
    pub(crate) fn book_out(&mut self, client: ClientSlot, agent: AgentSlot, resources: &Resources) {
        self.book(client, agent, resources, Booking::Out);
    }

    fn book(&mut self, client: ClientSlot, agent: AgentSlot, resources: &Resources, booking: Booking) {
        if !self.clients[client].touched {
            self.clients[client].touched = true;
            self.touched.push(client);
        }
        let node = self.clients[client].node;
        if !has_shared(resources) {
            let amount = resources.scalar_quantities();
            self.clients[client].held.book(&amount, booking);
            self.nodes[node].own.book(&amount, booking);
            self.each_above(node, |tree, at| tree.nodes[at].subtree.book(&amount, booking));
            return;
        }
        let amount = resources.non_shared().scalar_quantities();
        let shared = resources.shared().unallocate();
        let sum = amount.clone() + &self.count(Counted::Client(client), agent, &shared, booking);
        self.clients[client].held.book(&sum, booking);
        let sum = amount.clone() + &self.count(Counted::Own(node), agent, &shared, booking);
        self.nodes[node].own.book(&sum, booking);
        self.each_above(node, |tree, at| {
            let sum = amount.clone() + &tree.count(Counted::Subtree(at), agent, &shared, booking);
            tree.nodes[at].subtree.book(&sum, booking);
        });
    }

    fn each_above(&mut self, node: NodeSlot, mut visit: impl FnMut(&mut Self, NodeSlot)) {
        let mut next = Some(node);
        while let Some(at) = next {
            visit(self, at);
            next = self.nodes[at].parent;
        }
    }

    /// Keeps the copies of shared resources; returns the amount of those that came first or went last.
    fn count(&mut self, who: Counted, agent: AgentSlot, shared: &Resources, booking: Booking) -> Quantities {
        let copies = self.shared.entry((who, agent)).or_default();
        let before = copies.clone();
        match booking {
            Booking::In => *copies += shared,
            Booking::Out => *copies -= shared,
        }
        let after = copies.clone();
        if after.is_empty() {
            self.shared.remove(&(who, agent));
        }
        let (more, less) = if booking == Booking::In { (after, before) } else { (before, after) };
        let changed = more.filter(|resource| less.copies(resource) == 0);
        changed.scalar_quantities()
    }
}

/// The order.
impl Tree {
    /// Brings the order up to date with the bookings.
    pub(crate) fn settle_order(&mut self) {
        let mut touched = core::mem::take(&mut self.touched);
        touched.iter().for_each(|client| self.clients[*client].touched = false);
        if self.stale {
            self.stale = false;
            self.sort_everything();
        } else {
            touched.iter().for_each(|client| self.move_client(*client));
        }
        touched.clear();
        self.touched = touched;
    }

    pub(crate) fn share(&self, amount: &Quantities, weight: f64) -> f64 {
        let fractions = self.totals.iter().filter(|(name, _)| !self.excluded.contains(name));
        let fraction = |(name, total): (&Name, tepui_resources::Scalar)| {
            amount.get(name).thousandths() as f64 / total.thousandths() as f64
        };
        fractions.map(fraction).fold(0.0, f64::max) / weight
    }

    fn client_key(&self, client: &Client) -> Key {
        client.key.with(self.share(&client.held.amount, 1.0), client.held.grants)
    }

    fn own_key(&self, node: &Node) -> Key {
        node.own_key.with(self.share(&node.own.amount, 1.0), node.own.grants)
    }

    fn node_key(&self, node: &Node) -> Key {
        node.key.with(self.share(&node.subtree.amount, self.weight(&node.role)), node.subtree.grants)
    }

    fn move_client(&mut self, slot: ClientSlot) {
        let client = &self.clients[slot];
        let (at, active, old, new) = (client.node, client.active, client.key, self.client_key(client));
        self.clients[slot].key = new;
        let (own, own_new) = (self.nodes[at].own_key, self.own_key(&self.nodes[at]));
        let node = &mut self.nodes[at];
        node.own_key = own_new;
        if active {
            node.clients.replace(old, new, slot);
        }
        if node.clients.len() > 0 {
            node.children.replace(own, own_new, Child::Own);
        }
        self.move_node(at);
    }

    fn move_node(&mut self, slot: NodeSlot) {
        let node = &self.nodes[slot];
        let Some(parent) = node.parent else { return };
        let (active, old, new) = (node.active > 0, node.key, self.node_key(node));
        self.nodes[slot].key = new;
        if active {
            self.nodes[parent].children.replace(old, new, Child::Role(slot));
        }
        self.move_node(parent);
    }

    fn sort_everything(&mut self) {
        let clients: Vec<_> =
            self.clients.iter().map(|(slot, client)| (slot, self.client_key(client))).collect();
        for (slot, key) in clients {
            self.clients[slot].key = key;
        }
        let keys = |(slot, node): (NodeSlot, &Node)| (slot, self.node_key(node), self.own_key(node));
        let nodes: Vec<_> = self.nodes.iter().map(keys).collect();
        for (slot, key, own_key) in &nodes {
            self.nodes[*slot].key = *key;
            self.nodes[*slot].own_key = *own_key;
        }
        for (slot, _, own_key) in nodes {
            let (mut clients, mut children) = {
                let node = &mut self.nodes[slot];
                (core::mem::take(&mut node.clients), core::mem::take(&mut node.children))
            };
            clients.sort_by(|client| self.clients[client].key);
            children.sort_by(|child| match child {
                Child::Own => own_key,
                Child::Role(role) => self.nodes[role].key,
            });
            self.nodes[slot].clients = clients;
            self.nodes[slot].children = children;
        }
    }
}

impl Node {
    fn new(role: Role, parent: Option<NodeSlot>, rng: &mut Rng) -> Self {
        Self {
            role,
            parent,
            uses: 0,
            own: Tally::default(),
            subtree: Tally::default(),
            active: 0,
            children: Order::default(),
            clients: Order::default(),
            key: Key::drawn(rng),
            own_key: Key::drawn(rng),
            fresh_run: 0,
        }
    }

    pub(crate) fn is_fresh(&self, run: u64) -> bool {
        self.fresh_run == run
    }
}

impl Client {
    fn new(framework: FrameworkSlot, node: NodeSlot, rng: &mut Rng) -> Self {
        Self {
            framework,
            node,
            held: Tally::default(),
            subscribed: false,
            active: false,
            wishes: Wishes::default(),
            key: Key::drawn(rng),
            touched: false,
            fresh_run: 0,
        }
    }

    pub(crate) fn is_fresh(&self, run: u64) -> bool {
        self.fresh_run == run
    }
}

impl Tally {
    fn book(&mut self, amount: &Quantities, booking: Booking) {
        match booking {
            Booking::In => {
                self.amount += amount;
                self.grants += 1;
            }
            Booking::Out => self.amount -= amount,
        }
    }
}
